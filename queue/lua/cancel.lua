-- A job is not wanted any more: one that waits is removed, of one that runs the holder is asked to
-- end it.
--
--  KEYS[1]  prefix      hf:{queue}:
--  ARGV[1]  not_after   ms on Redis's clock; 0: no limit
--  ARGV[2]  id
--  returns  {OK, now} (removed) | {RUNS, now, token, until} (its holder hears of it with its next
--           renewal; the end of its lease) | {IS_DEAD, now} | {GONE, now} | {LATE, now}
--           Sent twice: GONE if it was removed, else the same.
if late(ARGV[1]) then
  return { LATE, now }
end
local id = ARGV[2]
if call('ZSCORE', DEAD, id) then
  return { IS_DEAD, now }
end
local runs = call('ZSCORE', RUNNING, id)
local token = runs and call('GET', LOCK .. id)
if token then
  open_writes()
  call('HSET', CANCELS, id, string.match(token, '(%d*)$'))
  return { RUNS, now, token, now + math.max(0, call('PTTL', LOCK .. id)) }
end
-- One that runs without a lock was left by a holder that is gone: nobody has to be asked.
open_writes()
if call('ZREM', runs and RUNNING or SCHEDULE, id) == 0 then
  return { GONE, now }
end
remove({ id }, 'cancelled', true)
baton(read_meta(), false)
return { OK, now }
