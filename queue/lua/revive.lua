-- Dead jobs back into the line, at once, as if they were new.
--
--  KEYS[1]  prefix      hf:{queue}:
--  ARGV[1]  not_after   ms on Redis's clock; 0: no limit
--  ARGV[2]  id          '' : the longest dead ones
--  ARGV[3]  max         so many at most, 1..1000
--  ARGV[4]  before      only those that died until then, ms; 0: all
--  returns  {OK, now, revived} | {GONE, now} (that id is not dead) | {LATE, now}
--           Sent twice with an id: GONE.
if late(ARGV[1]) then
  return { LATE, now }
end
local ids = { ARGV[2] }
if ARGV[2] == '' then
  local before = ARGV[4] == '0' and '+inf' or ARGV[4]
  ids = call('ZRANGEBYSCORE', DEAD, '-inf', before, 'LIMIT', 0, ARGV[3])
elseif not call('ZSCORE', DEAD, ARGV[2]) then
  return { GONE, now }
end
open_writes()
for _, id in ipairs(ids) do
  local record = rewrite(call('HGET', JOBS, id) or '', function(head)
    head.attempts, head.reason, head.died, head.refused = nil, nil, nil, nil
  end)
  call('ZREM', DEAD, id)
  call('HSET', JOBS, id, record)
  call('ZADD', SCHEDULE, now, id)
end
clear_marks(ids)
if #ids > 0 then
  baton(read_meta(), false)
end
return { OK, now, #ids }
