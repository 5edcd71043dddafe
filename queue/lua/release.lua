-- Put back jobs that this worker holds, with no attempt counted: it did not run them, or their handlers
-- want them later. A job with a request to cancel is removed instead.
--
--  KEYS[1]   prefix      hf:{queue}:
--  ARGV[1]   worker      its id
--  ARGV[2]   not_after   ms on Redis's clock; 0: no limit
--  ARGV[3]   resent      how many of the first were sent before, without an answer
--  ARGV[4..] id, fence, due, how, error for each job, at most 1000. error '': due is the time at which it
--            was due before the claim, so it is at the head again. Else the error is kept in the record, with
--            the time of its first refusal, and due is a delay in ms from now, at most 100 years. how:
--            `unstarted`  it never started, and its token of the rate is given back
--            `started`    it did, and its start counts, because its effects cannot be undone
--            `later`      it started, and its handler wants it again after this delay; an error is kept
--            `cancelled`  it started, and its handler cancels it
--            `neighbour`  it started, and its process was ended because of another job in it: back to its
--                         place, an error is kept, and after three times in a row its next run has a process
--                         to itself
--            `down`       it never started, because what would run it is down: back after this delay, an
--                         error is kept, and this is no refusal
--  returns   {OK, now} (all held) | {OK, now, {code, ...}} | {LATE, now}; a code is OK, LOST,
--            GONE.
--            Sent twice: LOST, and nothing changes.
--- @step "steps/guard.lua"
if came_late(ARGV[2]) then
  return { LATE, now }
end
local dues, placed = {}, {}
for i = 6, #ARGV, 5 do
  local how = ARGV[i + 1]
  local stays = how == 'neighbour' or ARGV[i + 2] == '' and how ~= 'later' and how ~= 'down'
  dues[i - 2], placed[i - 2] = clamped(ARGV[i], stays and TIME_MAX or DELAY_MAX), stays
end
local places, codes, lost, unsure = owned(ARGV[1], 4, 5, digits(ARGV[3], 1000))
open_writes()
local uses, unstarted = call('HGET', META, 'uses'), 0
for k = 1, #places do
  local i = places[k]
  local id, due, how, text = ARGV[i], dues[i], ARGV[i + 3], ARGV[i + 4]
  local never = how == 'unstarted' or how == 'down'
  unstarted = unstarted + (never and 1 or 0)
  if how == 'cancelled' then
    leave('cancelled', { id }, RUNNING, { LOCK .. id })
  elseif not cancelled(id, ARGV[i + 1]) then
    run_over(id)
    call('ZREM', RUNNING, id)
    if placed[i] then
      due = math.min(due, now) -- it was due, though this clock was set back
    else
      due = after_delay(now + due)
    end
    if not placed[i] or how == 'neighbour' then
      call('HSET', JOBS, id, rewrite(call('HGET', JOBS, id) or '', function(head)
        head.error = text ~= '' and text or head.error
        if how == 'neighbour' then
          head.alone = math.min(ALONE, (tonumber(head.alone) or 0) + 1)
        elseif how == 'later' then
          head.refused, head.unhandled, head.alone = nil, nil, nil
        elseif how ~= 'down' then
          head.refused = head.refused or now
        end
      end))
    end
    put_back(id, due, uses, not never)
    call('DEL', LOCK .. id)
  end
end
count('lost', lost)
count('unsure', unsure)
if #places > 0 then
  wake(refund(read_meta(), unstarted))
end
return { OK, now, codes }
