-- Take jobs: first those whose lease was found to be over (read.lua; a cancelled one is removed), then due ones.
--
--  KEYS[1]   prefix      hf:{queue}:
--  ARGV[1]   worker      its id, unique for each life of a process
--  ARGV[2]   number      of this claim; rises for each worker and queue
--  ARGV[3]   max         jobs, 1..1000, 200 of them from dead holders
--  ARGV[4]   lease       ms
--  ARGV[5]   not_after   ms on Redis's clock; 0: no limit
--  ARGV[6]   alive       ms for which the worker counts as alive; 0: no change
--  ARGV[7]   baton       `doubted` (after a reconnect: the next wake-up is doubted), `due` (the time of its
--            baton has come: a next wake-up that has come is doubted, a later one is another worker's), or ''
--  ARGV[8]   slots       how many can start at once: of a queue with a limit no more are taken
--  ARGV[9]   rules       `poison dead_max dead_age`: crashes of its holders until a job is dead, 0: count
--            none; the bounds of `dead`, jobs and ms
--  returns   {OK, now, fence, next, more, crashes, buried, due, id, record, ...} | {LATE, now}
--            next: when it could succeed again; 0: not by time alone. more: 1 if a claim at once
--            would find something even if every other worker came before it; {more, ticks} if ticks
--            are due that this worker has to reckon (lib/cron.lua). crashes: {id, how many,
--            checkpoint, ...} of those taken over, or with crashes or a checkpoint ('': none); buried: {id, why,
--            ...}; each 0 if there is none. due: of all of them, or {due, ...} of each. Of more than
--            32 jobs: {id, ...}, {record, ...}. Token: `worker:fence`. Sent twice: other jobs.
--- @step "steps/guard.lua"
if ARGV[5] ~= '0' and now > ARGV[5] + 0 then
  return { LATE, now }
end
-- 1. Read the queue, and make the token of this claim.
local c = open_claim(ARGV[1], ARGV[3] + 0, ARGV[4], ARGV[7])
if has(c.uses, EXPIRY) then
  c.late = is_one_late()
end
-- 2. Look closer where a limit, a lease that is over, a job that expires or a clock that was set back may count.
-- Jobs of dead holders come first, and the limits leave this many places for others.
if c.ended or c.late or now < c.high or has_any(c.uses, CLOSER) then
  local uses = c.uses
  --- @step "steps/sharded.lua"
  look_closer(c, ARGV[8], ARGV[9])
end
-- 3. Take due jobs, in order, those of a higher level first; again, if locks were held elsewhere. What others have
-- refused comes first if this worker handles it.
if c.refused then
  own_to_front(c.worker, c.free - (c.n - c.over))
end
if has(c.uses, LEVELS) then
  take_by_level(c)
else
  take_in_order(c)
end
if c.odd or c.buried or has(c.uses, FREED_AT_START) then
  end_others(c, ARGV[9])
end
-- 4. Remember the claim, in case its answer is lost, its fence, and the tokens it took.
local crashes, ticks, left = 0, nil, 0
if c.n > 0 then
  remember(c, ARGV[2])
  if has(c.uses, EXPIRY) then -- they have started
    call('ZREM', EXPIRES, unpack(c.ids, 1, c.n))
  end
  if c.over > 0 or has(c.uses, MARKS) then
    crashes = crashes_of_all(c.ids, c.n, c.over)
  end
end
-- 5. Note that the worker is alive. Tell it of ticks that are due.
if ARGV[6] ~= '0' then
  refresh_worker(c.worker, ARGV[6] + 0, c.lease)
end
if c.limits and not c.limits.paused and has(c.uses, SCHEDULES) then
  ticks = told_ticks(c.worker)
end
-- 6. Follow the wake rule. Where no limit counts, the next claim is for the head.
local at, next_wake, doubted = nil, c.next_wake, c.doubted
if c.limits or c.n == 0 or c.more == nil or has(c.uses, EXPIRY) then
  at = wake_by_all(c)
else
  if c.more then
    at = now
  elseif has(c.uses, LEVELS) then
    at = first_due(c.uses)
  else
    at = call('ZRANGE', SCHEDULE, '0', '0', 'WITHSCORES')[2]
  end
  at = at and math.min(TIME_MAX, floor(at))
  --- @step "steps/wake_rule.lua"
end
-- 7. Hand the jobs out. Say whether more is left than all other workers could take.
if at and at > 0 and at <= now then
  left = more_left(c)
end
return hand_out(c, at or 0, ticks and { left, ticks } or left, crashes)
