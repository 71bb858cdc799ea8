-- Promotes what is due, then takes the best jobs a worker can do. Mirrors queue/operations.py;
-- the contract suite holds the two together.
-- KEYS: counters, epochs, delayed, ready, ageing, held, holders, states, heads, runs, workers
-- ARGV[1]: msgpack {now, epoch, promote_max, boost_age, boost_points, worker, closed, kinds, capabilities, limit,
--                   scan, lease_until, avoid_age, whether to start them, kill_grace_s, number of the spec
--                   in a head, field numbers of a run, number of fields}
-- Answers {1, promoted, sign, head, run, head, run, ...}, or {0, current epoch}.
local counters, epochs, delayed, ready, ageing = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local held, holders, states, heads, runs = KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10]
local workers = KEYS[11]
local a = cmsgpack.unpack(ARGV[1])
local now, field = a.now, a.fields

if a.epoch > 0 then
  local known = redis.call('HGET', epochs, 'leader')
  local current = known and cmsgpack.unpack(known) or 0
  if a.epoch < current then
    return {0, current}
  end
end

-- A member of the queue is lane, NUL, rank (4 digits), due, created (17 digits each), id.
local function parts(member)
  local at = string.find(member, '\0', 1, true)
  return {
    lane = string.sub(member, 1, at - 1),
    order = string.sub(member, at + 1),
    rank = tonumber(string.sub(member, at + 1, at + 4)),
    due = tonumber(string.sub(member, at + 5, at + 21)),
    created = string.sub(member, at + 22, at + 38),
    id = string.sub(member, at + 39),
    member = member,
  }
end

local due = redis.call(
  'ZRANGEBYSCORE', delayed, '-inf', string.format('%.0f', now), 'LIMIT', 0, a.promote_max)
for _, member in ipairs(due) do
  local job = parts(member)
  redis.call('ZREM', delayed, member)
  redis.call('ZADD', ready, 0, member)
  if job.rank > 0 then
    -- It may have been bettered before it was put off: by a worker or a leader with another clock.
    local priority = cmsgpack.unpack(redis.call('HGET', heads, job.id))[a.spec].priority
    local since = math.max(job.due, tonumber(job.created))
    local boosts = math.floor((priority - job.rank) / a.boost_points) + 1
    redis.call('ZADD', ageing, string.format('%.0f', since + a.boost_age * boosts), member)
  end
end
local sign = 0
if #due > 0 then
  sign = redis.call('HINCRBY', counters, 'news', 1)
end

local answer = {1, #due, sign}
if a.limit == 0 then
  return answer
end

local function set_of(list)
  local set = {}
  for _, value in ipairs(list) do
    set[value] = true
  end
  return set
end
local known = redis.call('HGET', workers, a.worker)
if known and set_of(a.closed)[cmsgpack.unpack(known).state] then
  return answer
end
local kinds, offered = set_of(a.kinds), set_of(a.capabilities)
local function fits(lane)
  local kind, needed = string.match(lane, '^([^,]*)(.*)$')
  if #a.kinds > 0 and not kinds[kind] then
    return false
  end
  for capability in string.gmatch(needed, '[^,]+') do
    if not offered[capability] then
      return false
    end
  end
  return true
end

-- From lane to lane along the set, without looking at the jobs between.
local candidates = {}
local from = '-'
while true do
  local head = redis.call('ZRANGEBYLEX', ready, from, '+', 'LIMIT', 0, 1)[1]
  if not head then
    break
  end
  local lane = parts(head).lane
  from = '(' .. lane .. '\1'
  if fits(lane) then
    local members = redis.call(
      'ZRANGEBYLEX', ready, '[' .. lane .. '\0', from, 'LIMIT', 0, a.limit + a.scan)
    for _, member in ipairs(members) do
      candidates[#candidates + 1] = parts(member)
    end
  end
end
table.sort(candidates, function(x, y) return x.order < y.order end)

-- nil fields leave holes in a Lua table, so a run is packed field by field.
local function pack(run)
  local n = a.field_count
  local bytes = {'\220' .. string.char(math.floor(n / 256), n % 256)}
  for i = 1, n do
    bytes[i + 1] = cmsgpack.pack(run[i])
  end
  return table.concat(bytes)
end

-- As policies/lifecycle.py has it: no lease reaches beyond the job's timeout or its patience.
local function lease_of(head)
  local spec = cmsgpack.unpack(head)[a.spec]
  local ends = a.lease_until
  if spec.timeout_s then
    ends = math.min(ends, now + math.floor((spec.timeout_s + a.kill_grace_s) * 1e6 + 0.5))
  end
  if spec.stall_timeout_s then
    ends = math.min(ends, now + math.floor(spec.stall_timeout_s * 1e6 + 0.5))
  end
  return ends
end

local state = a.start and 'EXECUTING' or 'CLAIMED'
local taken = 0
for i = 1, math.min(#candidates, a.limit + a.scan) do
  if taken == a.limit then
    break
  end
  local job = candidates[i]
  local run = cmsgpack.unpack(redis.call('HGET', runs, job.id))
  if run[field.avoid_worker] ~= a.worker or job.due + a.avoid_age <= now then
    local head = redis.call('HGET', heads, job.id)
    local lease_until = a.lease_until
    if a.start then
      lease_until = lease_of(head)
      run[field.started_at] = now
      run[field.progress] = 0
      run[field.last_report] = ''
    end
    run[field.state] = state
    run[field.worker] = a.worker
    run[field.token] = redis.call('HINCRBY', counters, 'tokens', 1)
    run[field.claimed_at] = now
    run[field.lease_until] = lease_until
    run[field.updated_at] = now
    local packed = pack(run)
    redis.call('HSET', runs, job.id, packed)
    redis.call('ZREM', ready, job.member)
    redis.call('ZREM', ageing, job.member)
    redis.call('ZADD', held, string.format('%.0f', lease_until), job.id)
    redis.call('ZADD', holders, 0, a.worker .. '\0' .. job.id)
    redis.call('ZREM', states, 'PENDING\0' .. job.created .. job.id)
    redis.call('ZADD', states, 0, state .. '\0' .. job.created .. job.id)
    answer[#answer + 1] = head
    answer[#answer + 1] = packed
    taken = taken + 1
  end
end
return answer
