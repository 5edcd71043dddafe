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
local worker, max, lease, baton = ARGV[1], ARGV[3] + 0, ARGV[4], ARGV[7]
local meta = call('HMGET', META, 'next_wake', 'fence', 'uses', 'high', 'clock')
local ended = call('ZRANGE', RUNNING, '0', '0', 'WITHSCORES')[2] == '0' -- a lease is over
local next_wake, uses, high = meta[1] and meta[1] + 0, meta[3], meta[4] and meta[4] + 0 or 0
local marked = has(uses, MARKS)
local expires, late = has(uses, EXPIRY), false
if expires then
  local by = call('ZRANGE', EXPIRES, '0', '0', 'WITHSCORES')[2]
  late = by and by + 0 <= now
end
local fence = time[1] .. micros
if meta[2] and meta[2] + 0 >= fence + 0 then
  fence = string.format('%d', meta[2] + 1)
end
local token, clock = worker .. ':' .. fence, meta[5]
--- @step "steps/lease_end.lua"
-- The jobs; `due` of all of them, or `dues` of each. m: the limits of the queue; nil: there are none.
local taken, records, due, dues, n, bytes, buried, m = {}, {}, nil, nil, 0, 0, nil, nil
local come = next_wake and next_wake <= now -- the time of the baton that was put last
local doubted = baton == 'due' and come or baton == 'doubted'
local free, over, more = max, 0, nil -- taken over; whether more are due, nil: not known
local paused, wait, ticks = false, 10, nil -- wait: ms until a claim that came to nothing may be repeated

-- 2. Look closer where a limit, a lease that is over, a job that expires or a clock that was set back may count.
-- Jobs of dead holders come first, and the limits leave so many places for others.
if has_any(uses, CLOSER) or late or ended or now < high then
  --- @step "steps/sharded.lua"
  if has_any(uses, UNKNOWN) then
    error('holdfast: the queue uses what this version does not know: `' .. uses .. '` in ' .. META, 0)
  end
  m = read_meta()
  paused = m.paused
  m.high = now < high and heed_clock(high) or m.high
  if late then
    buried = {}
    max = expire_due(buried) and 0 or max -- it comes back at once, for the others
  end
  if ended and not paused then
    dues, buried, marked = {}, buried or {}, true
    n, bytes = take_over({
      worker = worker, token = token, max = max, lease = lease, lease_end = lease_end,
      poison = string.match(ARGV[9], '^%d+') + 0,
      taken = taken, records = records, dues = dues, buried = buried, expires = expires,
    })
    over = n
  end
  if buried then -- jobs have ended here: one that followed waits now. If its time is over,
    m = read_meta() -- this worker comes back at once
    uses, expires = m.uses, has(m.uses, EXPIRY)
    max = expires and call('ZCOUNT', EXPIRES, '-inf', stamp) > 0 and n or max
  end
  free = free_places(m, max - n, ARGV[8] - n)
end

-- Takes the first k of a set out of it. Returns when they all were due, or also when each was.
local function take_out(set, ids, k)
  if k == 1 then
    return call('ZPOPMIN', set)[2]
  end
  local at, each = call('ZSCORE', set, ids[1]), nil -- mostly that of them all
  local together = call('ZCOUNT', set, at, at)
  if together < k then
    each = dues_of(set, ids, k, at, together)
  end
  call('ZREMRANGEBYRANK', set, '0', k - 1)
  return at, each
end

-- Locks the first k. Returns the places of those that are locked elsewhere, or have no record; nil: there is none.
local function lock_each(ids, found, k)
  local odd
  for i = 1, k do
    local record = found[i]
    if record and call('SET', LOCK .. ids[i], token, 'NX', 'PXAT', lease_end) then
      bytes = bytes + #record
    else
      odd = odd or {}
      odd[i] = true
    end
  end
  return odd
end

-- Adds the first k, but for the odd ones, to those that are taken, and to `running`.
local function add(ids, found, k, at, each, odd)
  local before = n
  if n == 0 and not odd then
    taken, records, dues, due, n = ids, found, each, at, k
  else -- to those that are there already, or with gaps
    dues = dues or {}
    for i = 1, n do
      dues[i] = dues[i] or due
    end
    for i = 1, k do
      if not (odd and odd[i]) then
        n = n + 1
        taken[n], records[n], dues[n] = ids[i], found[i], each and each[i] or at
      end
    end
  end
  if n == 1 and before == 0 then
    call('ZADD', RUNNING, lease_end, taken[1])
  elseif n > before then -- the last one first: among equal scores a place is looked for from there
    local running = {}
    for i = n, before + 1, -1 do
      local j = 2 * (n - i) + 1
      running[j], running[j + 1] = lease_end, taken[i]
    end
    call('ZADD', RUNNING, unpack(running))
  end
end

-- 3. Take due jobs, in order; again, if locks were held elsewhere.
local levelled, plan, beyond, turn = has(uses, LEVELS), nil, nil, nil
local missing
for _ = 1, paused and 0 or 10 do
  local want = free - (n - over)
  if want <= 0 or bytes > MAX_BYTES or more == false then
    break
  end
  local set = SCHEDULE
  if levelled then
    if not plan or #plan == 0 then
      plan, beyond, turn = by_level(want, turn or (call('HGET', META, 'turn') or 0) + 0)
    end
    local part = table.remove(plan, 1) or { set, 0 }
    set, want = part[1], part[2]
  end
  local ids = call('ZRANGEBYSCORE', set, '-inf', stamp, 'LIMIT', '0', want + 1)
  local got = math.min(#ids, want)
  more = #ids > want or levelled and (beyond or #plan > 0) or false
  if has(uses, LARGE) then -- large records: no more than there is room for
    local fit = that_fit(ids, got, MAX_BYTES - bytes, n == 0)
    if fit < got then
      got, more, bytes = fit, true, MAX_BYTES + 1 -- no further round
    end
  end
  if got == 0 then
    break
  end
  local found = call('HMGET', JOBS, unpack(ids, 1, got))
  local due_at, dues_at = take_out(set, ids, got)
  local odd = lock_each(ids, found, got)
  add(ids, found, got, due_at, dues_at, odd)
  for k in pairs(odd or {}) do -- where they belong
    if found[k] then
      wait_for_lock(set, ids[k], lease)
    else
      missing = missing or {}
      missing[#missing + 1] = ids[k]
    end
  end
end
local starting = n > over and has(uses, FREED_AT_START)
if missing or starting or buried and #buried > 0 then
  --- @step "steps/claim_ends.lua"
end
-- 4. Answer.
local answer = { OK, now, fence, 0, 0, 0, 0, n > 0 and (dues or due) or nil, taken[1], records[1] }
if n > 32 then -- two tables in the answer cost less than to copy so many into it
  taken[n + 1], answer[9], answer[10] = nil, taken, records
end
for k = 2, n <= 32 and n or 0 do
  answer[2 * k + 7], answer[2 * k + 8] = taken[k], records[k]
end
-- 5. Remember the claim, in case its answer is lost, its fence, and the tokens it took.
if n > 0 then
  local words = taken
  if dues then
    words = with_dues(taken, dues, n)
  end
  words[0] = ARGV[2] .. ' ' .. fence .. (dues and '' or ' =' .. due)
  call('SET', P .. 'last:' .. worker, concat(words, ' ', 0, n), 'PX', lease)
  if not m and now > high + HIGH_MS then
    call('HSET', META, 'fence', fence, 'high', stamp)
  else
    call('HSET', META, 'fence', fence)
  end
  if turn then
    call('HSET', META, 'turn', turn)
  end
  if m and m.rate > 0 then
    m.tokens = m.tokens - (n - over)
    call('HSET', META, 'tokens', string.format('%.6f', m.tokens), 'tokens_at', stamp)
  end
end
if expires and n > 0 then -- they have started
  call('ZREM', EXPIRES, unpack(taken, 1, n))
end
-- 6. Tell the worker of crashes and of buried jobs.
if marked and n > 0 then
  answer[6] = crashes_of_all(taken, n, over)
end
if buried and #buried > 0 then
  answer[7] = buried
end
-- 7. Note that the worker is alive.
if ARGV[6] ~= '0' then
  refresh_worker(worker, ARGV[6] + 0, lease)
end
-- 8. Tell the worker of ticks that are due.
if m and not paused and has(m.uses, SCHEDULES) then
  ticks = told_ticks(worker)
end
-- 9. Follow the wake rule. Where no limit counts, the next claim is for the head.
local at
if m or n == 0 or more == nil or expires then
  open_writes()
  at = wake(m or read_meta(), doubted, n == 0 and not ended and now + wait or now)
else
  local head
  if levelled and not more then
    head = first_due(uses)
  else
    head = more and stamp or call('ZRANGE', SCHEDULE, '0', '0', 'WITHSCORES')[2]
  end
  at = head and math.min(TIME_MAX, floor(head))
  --- @step "steps/wake_rule.lua"
  at = at or 0
end
-- 10. Say whether more is left than all other workers could take.
local left = 0
if at > 0 and at <= now then
  local limited = m and (m.max_running > 0 or m.rate > 0)
  local others = call('ZCOUNT', WORKERS, stamp, '+inf') - 1
  local due_now = others > 0 and not limited and call('ZCOUNT', SCHEDULE, '-inf', stamp) or 0
  if levelled and others > 0 and not limited then
    due_now = due_now + call('ZCOUNT', SCHEDULE .. ':h', '-inf', stamp)
      + call('ZCOUNT', SCHEDULE .. ':l', '-inf', stamp)
  end
  left = (others <= 0 or due_now > max * others) and 1 or 0
end
answer[4], answer[5] = at, ticks and { left, ticks } or left
return answer
