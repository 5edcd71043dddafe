-- Move jobs that must not run again to `dead`, with the reason; `dead` is bounded. A job with a
-- request to cancel is removed.
--
--  KEYS[1]   prefix      hf:{queue}:
--  ARGV[1]   worker      its id
--  ARGV[2]   not_after   ms on Redis's clock; 0: no limit
--  ARGV[3]   resent      how many of the first were sent before, without an answer
--  ARGV[4]   dead_max    bounds of `dead`: jobs
--  ARGV[5]   dead_age    and ms
--  ARGV[6..] id, fence, counts, reason, error, ran for each job, at most 1000; counts 1: the attempt
--            is counted, and ran is its time in ms; 0: it never started, and its token of the rate is
--            given back
--  returns   {OK, now} (all held) | {OK, now, {code, ...}} | {LATE, now}; a code is OK, LOST,
--            GONE.
--            Sent twice: LOST (GONE if `dead` was trimmed), and nothing changes.
--- @step "steps/guard.lua"
if came_late(ARGV[2]) then
  return { LATE, now }
end
local places, codes, lost, unsure = owned(ARGV[1], 6, 6, digits(ARGV[3], 1000))
local dead_max, dead_age = clamped(ARGV[4], math.huge), clamped(ARGV[5], DELAY_MAX)
local failed, unstarted, rans = 0, 0, {}
for i = 6, #ARGV, 6 do
  rans[i] = ARGV[i + 2] == '1' and clamped(ARGV[i + 5], DELAY_MAX) or nil
end
open_writes()
for k = 1, #places do
  local i = places[k]
  local id, ran = ARGV[i], rans[i]
  if not cancelled(id, ARGV[i + 1]) then
    bury(RUNNING, id, call('HGET', JOBS, id) or '', ARGV[i + 3], ARGV[i + 4], ARGV[1], ran)
    failed = failed + (ran and 1 or 0)
  end
  unstarted = unstarted + (ran and 0 or 1)
end
count('failed', failed)
count('lost', lost)
count('unsure', unsure)
if #places > 0 then
  trim_dead(dead_max, dead_age, #places)
  wake(refund(read_meta(), unstarted))
end
return { OK, now, codes }
