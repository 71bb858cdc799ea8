-- Applies steps whose readings are still true, each whole or not at all.
-- KEYS[1]: counters. ARGV[1]: msgpack list of {checks, writes, whether it is news}:
--   check {number of the hash in KEYS, field, value it had, or false for none}
--   write {command, number of its key in KEYS, argument, ...}
-- Answers the sign of change (0 when there is no news), then 1 or 0 per step.
local answers = {0}
local news = false
for i, step in ipairs(cmsgpack.unpack(ARGV[1])) do
  local holds = 1
  for _, check in ipairs(step[1]) do
    if redis.call('HGET', KEYS[check[1]], check[2]) ~= check[3] then
      holds = 0
      break
    end
  end
  if holds == 1 then
    for _, write in ipairs(step[2]) do
      redis.call(write[1], KEYS[write[2]], unpack(write, 3))
    end
    news = news or step[3]
  end
  answers[i + 1] = holds
end
if news then
  answers[1] = redis.call('HINCRBY', KEYS[1], 'news', 1)
end
return answers
