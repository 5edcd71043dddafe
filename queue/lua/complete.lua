-- Jobs are done: remove those that this worker holds.
--
--  KEYS[1]   prefix      hf:{queue}:
--  ARGV[1]   worker      its id
--  ARGV[2]   not_after   ms on Redis's clock; 0: no limit
--  ARGV[3]   resent      the first so many were sent before, without an answer
--  ARGV[4..] id, fence for each job, at most 1000
--  returns   {OK, now, {code, ...}} | {LATE, now}; a code is OK, LOST (another token, or none),
--            GONE (no such job). Sent twice: GONE, or LOST if the id was accepted anew.
if late(ARGV[2]) then
  return { LATE, now }
end
local places, codes, lost, unsure = owned(ARGV[1], 4, 2, tonumber(ARGV[3]))
local ids, locks = {}, {}
for k = 1, #places do
  ids[k] = ARGV[places[k]]
  locks[k] = LOCK .. ids[k]
end
if #ids > 0 then
  call('ZREM', RUNNING, unpack(ids))
  call('HDEL', JOBS, unpack(ids))
  call('DEL', unpack(locks))
  clear_marks(ids)
  count('done', #ids)
end
if lost + unsure > 0 then
  open_writes()
  count('lost', lost)
  count('unsure', unsure)
end
if #ids > 0 then
  baton(read_meta(), false)
end
return { OK, now, codes }
