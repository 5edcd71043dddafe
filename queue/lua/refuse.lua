-- Refuse jobs that this worker holds and has no handler for. Each is put back, with no attempt counted, or
-- moved to `dead`. A job with a request to cancel is removed.
--
--  KEYS[1]   prefix      hf:{queue}:
--  ARGV[1]   worker      its id
--  ARGV[2]   not_after   ms on Redis's clock; 0: no limit
--  ARGV[3]   resent      how many of the first were sent before, without an answer
--  ARGV[4]   dead_max    bounds of `dead`: jobs
--  ARGV[5]   dead_age    and ms
--  ARGV[6]   patience    a job is dead this many ms after the first refusal since which no live worker of
--            the queue has a handler for its type
--  ARGV[7..] id, fence, error for each job, at most 1000; the error is kept in the record
--  returns   {OK, now, {code, ...}} | {LATE, now}; a code is OK (put back), EXISTS (put back, and
--            a live worker of the queue has a handler for its type), IS_DEAD, LOST, GONE.
--            Sent twice: LOST, and nothing changes.
--- @step "steps/guard.lua"
if came_late(ARGV[2]) then
  return { LATE, now }
end
local places, codes, lost, unsure = owned(ARGV[1], 7, 3, digits(ARGV[3], 1000))
local dead_max, dead_age = clamped(ARGV[4], math.huge), clamped(ARGV[5], DELAY_MAX)
local patience = clamped(ARGV[6], DELAY_MAX)

-- A worker that has a handler is one claim away, or starts in a moment. So the job comes back soon, and later each
-- time. Of many that were refused each waits longer: all together are refused about a thousand times a second.
-- A worker that refuses a job is often the next one to wait for it, so two workers could each take the job of the
-- other for ever, in turns. So refused jobs come back together, at times that are multiples of `step`, and chance puts
-- some of them a step later: one worker takes both, or the other one is first.
local many = call('ZCARD', refused_key())
local SOON_MS, AWAY_MS, LONGEST_MS = 250, 5000, 9000

local function wait_ms(head, handled)
  local since = math.max(0, now - (tonumber(head.refused) or now))
  local longest = math.min(LONGEST_MS, math.max(handled and SOON_MS or AWAY_MS, many))
  return math.min(longest, math.max(50, floor(since / 4)))
end

local function back_at(wait)
  local step = math.min(wait, SOON_MS)
  return (math.ceil((now + wait) / step) + micros % 2) * step
end

open_writes()
local uses, deaths = call('HGET', META, 'uses'), 0
codes = codes or {}
for n = 1, (#ARGV - 6) / 3 do
  codes[n] = codes[n] or OK
end
for k = 1, #places do
  local i = places[k]
  local id, text = ARGV[i], ARGV[i + 2]
  if not cancelled(id, ARGV[i + 1]) then
    local record = call('HGET', JOBS, id) or ''
    local head = head_of(record) or {}
    local handled = has_handler(head.type)
    local unhandled = not handled and (tonumber(head.unhandled) or now) or nil
    if unhandled and now - unhandled >= patience then
      bury(RUNNING, id, record, 'type', text, ARGV[1])
      codes[(i - 4) / 3], deaths = IS_DEAD, deaths + 1
    else
      run_over(id)
      call('ZREM', RUNNING, id)
      call('HSET', JOBS, id, rewrite(record, function(line)
        line.error, line.refused, line.unhandled = text, line.refused or now, unhandled
      end))
      local due = after_delay(back_at(wait_ms(head, handled)))
      put_back(id, due, uses, false)
      goes_to_front(id, due)
      codes[(i - 4) / 3] = handled and EXISTS or OK
      call('DEL', LOCK .. id)
    end
  end
end
to_front()
count('lost', lost)
count('unsure', unsure)
if deaths > 0 then
  trim_dead(dead_max, dead_age, deaths)
end
if #places > 0 then
  wake(refund(read_meta(), #places))
end
return { OK, now, codes }
