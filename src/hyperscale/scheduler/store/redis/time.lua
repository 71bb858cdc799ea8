-- The server's clock: seconds and microseconds. KEYS name the slot it is asked for.
return redis.call('TIME')
