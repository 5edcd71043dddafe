-- Read the schedules whose next tick has come.
--
--  KEYS[1]  prefix   hf:{queue}:
--  ARGV[1]  max      schedules, 1..100
--  ARGV[2]  worker   that asks
--  returns  {OK, now, id, next, definition, state, bytes, ...}, see lib/cron.lua. Sent twice: the
--           same, without those that were held.
--- @step "steps/guard.lua"
local answer, max = { OK, now }, digits(ARGV[1], 100)
local m = call('HMGET', META, 'uses', 'paused')
local uses = m[1]
--- @step "steps/sharded.lua"
if m[2] == '1' then
  return answer
end
return due_ticks(answer, max, ARGV[2])
