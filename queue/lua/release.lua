-- Put back jobs that this worker holds and did not run, with no attempt counted. A job with a request
-- to cancel is removed instead.
--
--  KEYS[1]   prefix      hf:{queue}:
--  ARGV[1]   worker      its id
--  ARGV[2]   not_after   ms on Redis's clock; 0: no limit
--  ARGV[3]   resent      the first so many were sent before, without an answer
--  ARGV[4..] id, fence, due, started, error for each job, at most 1000. started 0: it never did,
--            and its token of the rate is given back; 1: it did, and its start counts, because
--            its effects cannot be undone. error '': due is the time at
--            which it was due before the claim, so it is at the head again. Else the error is
--            kept in the record, with the time of its first refusal, and due is a delay in ms
--            from now, at most 100 years.
--  returns   {OK, now} (all held) | {OK, now, {code, ...}} | {LATE, now}; a code is OK, LOST,
--            GONE.
--            Sent twice: LOST, and nothing changes.
--- @include "lib/guard.lua"
--- @include "lib/keys.lua"
--- @include "lib/key_lock.lua"
--- @include "lib/bounds.lua"
--- @include "lib/digits.lua"
--- @include "lib/clamped.lua"
--- @include "lib/late.lua"
--- @include "lib/open_writes.lua"
--- @include "lib/count.lua"
--- @include "lib/later.lua"
--- @include "lib/limits.lua"
--- @include "lib/wake.lua"
--- @include "lib/home_of.lua"
--- @include "lib/rewrite.lua"
--- @include "lib/cancelled.lua"
--- @include "lib/owned.lua"
if late(ARGV[2]) then
  return { LATE, now }
end
local dues = {}
for i = 6, #ARGV, 5 do
  dues[i - 2] = clamped(ARGV[i], ARGV[i + 2] == '' and TIME_MAX or DELAY_MAX)
end
local places, codes, lost, unsure = owned(ARGV[1], 4, 5, digits(ARGV[3], 1000))
open_writes()
local uses, unstarted = call('HGET', META, 'uses'), 0
for k = 1, #places do
  local i = places[k]
  local id, due, text = ARGV[i], dues[i], ARGV[i + 4]
  unstarted = unstarted + (ARGV[i + 3] == '0' and 1 or 0)
  if not cancelled(id, ARGV[i + 1]) then
    call('ZREM', RUNNING, id)
    if text ~= '' then
      due = later(now + due)
      call('HSET', JOBS, id, rewrite(call('HGET', JOBS, id) or '', function(head)
        head.error, head.refused = text, head.refused or now
      end))
    else
      due = math.min(due, now) -- it was due, though this clock was set back
    end
    call('ZADD', home_of(id, uses), due, id)
    call('DEL', LOCK .. id)
  end
end
count('lost', lost)
count('unsure', unsure)
if #places > 0 then
  wake(refund(read_meta(), unstarted))
end
return { OK, now, codes }
