-- Runs commands and gives their answers: one trip, one moment.
-- ARGV[1]: msgpack list of {command, number of its key in KEYS, argument, ...}
local answers = {}
for i, command in ipairs(cmsgpack.unpack(ARGV[1])) do
  answers[i] = redis.call(command[1], KEYS[command[2]], unpack(command, 3))
end
return answers
