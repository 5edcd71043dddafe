-- Read the schedules whose next tick has come.
--
--  KEYS[1]  prefix   hf:{queue}:
--  ARGV[1]  max      schedules, 1..100
--  returns  {OK, now, id, next, definition, state, ...}; the definition is the line of JSON without the
--           payload. Sent twice: the same.
--- @include "lib/guard.lua"
--- @include "lib/keys.lua"
--- @include "lib/key_cron.lua"
--- @include "lib/digits.lua"
local answer, max = { OK, now }, digits(ARGV[1], 100)
local m = call('HMGET', META, 'uses', 'paused')
local uses = m[1]
--- @step "lib/sharded.lua"
if m[2] == '1' then
  return answer
end
local due = call('ZRANGEBYSCORE', CRON_NEXT, '-inf', stamp, 'WITHSCORES', 'LIMIT', 0, max)
for i = 1, #due, 2 do
  local value, state = call('HGET', CRON, due[i]), call('HGET', CRON_STATE, due[i])
  if value and state then
    local n = #answer
    answer[n + 1], answer[n + 2] = due[i], due[i + 1]
    answer[n + 3], answer[n + 4] = string.match(value, '^[^\n]*'), state
  else
    call('ZREM', CRON_NEXT, due[i]) -- another hand has taken it out
  end
end
return answer
