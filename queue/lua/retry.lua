-- Attempts failed: put the jobs that this worker holds back for later. A job with a request to cancel
-- is removed.
--
--  KEYS[1]   prefix      hf:{queue}:
--  ARGV[1]   worker      its id
--  ARGV[2]   not_after   ms on Redis's clock; 0: no limit
--  ARGV[3]   resent      how many of the first were sent before, without an answer
--  ARGV[4..] id, fence, delay, error, ran, alone for each job, at most 1000; delay in ms from now, at
--            most 100 years; ran: ms of the attempt; alone 1: the next run has its process to itself
--  returns   {OK, now} (all held) | {OK, now, {code, ...}} | {LATE, now}; a code is OK, LOST,
--            GONE.
--            Sent twice: LOST, and nothing is counted again.
--- @step "steps/guard.lua"
if came_late(ARGV[2]) then
  return { LATE, now }
end
local delays, rans = {}, {}
for i = 6, #ARGV, 6 do
  delays[i - 2], rans[i - 2] = clamped(ARGV[i], DELAY_MAX), clamped(ARGV[i + 2], DELAY_MAX)
end
local places, codes, lost, unsure = owned(ARGV[1], 4, 6, digits(ARGV[3], 1000))
open_writes()
local uses, failed = call('HGET', META, 'uses'), 0
for k = 1, #places do
  local i = places[k]
  local id = ARGV[i]
  if not cancelled(id, ARGV[i + 1]) then
    run_over(id)
    local home
    local record = rewrite(call('HGET', JOBS, id) or '', function(head)
      home, head.start_by = level_of(head.priority), nil
      note_attempt(head, ARGV[1], rans[i], ARGV[i + 3])
      head.error, head.failed, head.refused, head.unhandled = ARGV[i + 3], now, nil, nil
      head.alone = ARGV[i + 5] == '1' and ALONE or nil
      head.failed_fence = ARGV[i + 1]
    end)
    call('ZREM', RUNNING, id)
    call('HSET', JOBS, id, record)
    local due = after_delay(now + delays[i])
    call('ZADD', home, due, id)
    call('DEL', LOCK .. id)
    if has(uses, UNIQUE_KEYS) then
      back_to_wait(id, home, due)
    end
    failed = failed + 1
  end
end
count('failed', failed)
count('lost', lost)
count('unsure', unsure)
if #places > 0 then
  wake(read_meta())
end
return { OK, now, codes }
