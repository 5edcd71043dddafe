-- Note which jobs report the deaths of jobs that do not say it themselves, as the file of a worker does.
--
--  KEYS[1]  prefix      hf:{queue}:
--  ARGV[1]  not_after   ms on Redis's clock; 0: no limit
--  ARGV[2]  types       `{"order.pay":"order.failed","*":"job.died"}`: for each type of a job that dies
--           the type of the job about its death, false: none; `*`: for all others. '': no job tells
--  returns  {OK, now} | {LATE, now}. Sent twice: the same.
--- @step "steps/guard.lua"
if came_late(ARGV[1]) then
  return { LATE, now }
end
local m, types = call('HMGET', META, 'uses', 'on_dead'), ARGV[2]
local uses = m[1]
--- @step "steps/sharded.lua"
for _, about in pairs(types ~= '' and cjson.decode(types) or {}) do
  local good = type(about) == 'string' and string.find(about, '^[%w%._:%-]+$')
  assert(good or about == false, 'holdfast: a type')
end
if types ~= (m[2] or '') then
  open_writes()
  if types == '' then
    call('HDEL', META, 'on_dead')
  else
    call('HSET', META, 'on_dead', types)
  end
end
return { OK, now }
