-- Jobs are done, and are kept for a while: those that this worker holds.
--
--  KEYS[1]   prefix      hf:{queue}:
--  ARGV[1]   worker      its id
--  ARGV[2]   not_after   ms on Redis's clock; 0: no limit
--  ARGV[3]   resent      how many of the first were sent before, without an answer
--  ARGV[4]   max         bounds of what is kept: jobs
--  ARGV[5]   max_bytes   and bytes, of the lines and results
--  ARGV[6..] id, fence, keep, words for each job, at most 1000; keep in ms; words: a line of JSON about
--            the job, a newline, its result
--  returns   {OK, now} (all held) | {OK, now, {code, ...}} | {LATE, now}; a code is OK, LOST
--            (another token, or none), GONE (no such job). Sent twice: GONE, or LOST if the id was
--            accepted again; nothing is kept anew.
--- @step "steps/guard.lua"
if came_late(ARGV[2]) then
  return { LATE, now }
end
local max, max_bytes = clamped(ARGV[4], math.huge), clamped(ARGV[5], math.huge)
local places, codes, lost, unsure = owned(ARGV[1], 6, 4, digits(ARGV[3], 1000))
local ids, locks, until_ms, words = {}, {}, {}, {}
for k = 1, #places do
  local i = places[k]
  ids[k], locks[k], words[k] = ARGV[i], LOCK .. ARGV[i], ARGV[i + 3]
  until_ms[k] = math.min(TIME_MAX, now + clamped(ARGV[i + 2], DELAY_MAX))
end
open_writes()
leave('done', ids, RUNNING, locks)
count('lost', lost)
count('unsure', unsure)
if #ids > 0 then
  keep_done(ids, until_ms, words)
  trim_kept(max, max_bytes, #ids)
  wake(read_meta())
end
return { OK, now, codes }
