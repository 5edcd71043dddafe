-- Find the ids of schedules between two ids: a slice of all, in no order.
--
--  KEYS[1]  prefix   hf:{queue}:
--  ARGV[1]  cursor   '0' at the start
--  ARGV[2]  after    '' : from the first id on; else from behind this one
--  ARGV[3]  before   '' : to the last id; else up to before this one
--  returns  {OK, now, cursor, id, ...}; cursor to ask for next, '0' at the end. Sent twice: the same.
--- @step "steps/guard.lua"
local uses = call('HGET', META, 'uses')
--- @step "steps/sharded.lua"
local page = call('HSCAN', CRON_STATE, ARGV[1], 'COUNT', 500) -- the definitions have payloads
local answer, after, before = { OK, now, page[1] }, ARGV[2], ARGV[3]
for i = 1, #page[2], 2 do
  local id = page[2][i]
  if is_before(after, id) and (before == '' or is_before(id, before)) and call('HEXISTS', CRON, id) == 1 then
    answer[#answer + 1] = id
  end
end
return answer
