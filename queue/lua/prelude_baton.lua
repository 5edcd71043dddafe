-- prelude_baton.lua - when somebody should claim, and how that is made known (docs/design.md); and
-- what was ready before Redis's clock was set back stays ready.

local BROKEN_MS = 100 -- a promise that is further past has been broken
local WATCHED_MS = 6000 -- every worker checks its queues more often than that

local function read_meta()
  local m = call('HMGET', META, 'paused', 'max_running', 'rate_limit', 'rate_per', 'tokens',
    'tokens_at', 'promised', 'fence', 'big', 'calm', 'high')
  return {
    paused = m[1] == '1', max_running = tonumber(m[2] or 0), rate = tonumber(m[3] or 0),
    per = tonumber(m[4] or 0), tokens = tonumber(m[5] or false), tokens_at = tonumber(m[6] or 0),
    promised = tonumber(m[7] or false), fence = tonumber(m[8] or 0), big = m[9],
    calm = tonumber(m[10] or 0), high = tonumber(m[11] or 0),
  }
end

-- `high` is the latest time that was seen here, to within HIGH_MS. If it is ahead, the clock was set
-- back: jobs that were due by then stay due, in their order, a slice of them at a time, or so many
-- slices. Jobs that were to come later wait for their time on the clock as it is now.
local HIGH_MS, STEP_BACK_JOBS = 100, 1000
local function heed_clock(high, slices)
  if now >= high and now <= high + HIGH_MS then
    return high
  end
  local to = high + HIGH_MS
  open_writes()
  for _ = 1, slices or 1 do
    local jobs = now < high and call('ZRANGEBYSCORE', SCHEDULE, '(' .. stamp,
      string.format('%d', to), 'WITHSCORES', 'LIMIT', 0, STEP_BACK_JOBS) or {}
    for i = 1, #jobs, 2 do
      call('ZADD', SCHEDULE, 'XX', string.format('%d', jobs[i + 1] - (to - now)), jobs[i])
    end
    if #jobs < 2 * STEP_BACK_JOBS then
      call('HSET', META, 'high', stamp)
      return now
    end
  end
  return high -- there may be more
end

-- The time for a job whose delay begins now. It must not be taken for one that was due before the
-- clock was set back. So those are moved first: 100,000 of them, in about 0.2 s. While there are more
-- yet, it waits until the clock is where it was.
local heeded
local function later(due)
  heeded = heeded or heed_clock(tonumber(call('HGET', META, 'high') or 0), 100)
  local to = heeded + HIGH_MS
  return now < heeded and due > now and due <= to and to + 1 or due
end

-- The token bucket: how many jobs may start now. It holds a tenth of a period's jobs, so that no
-- second sees much more than its rate; and it is full when the clock was set back, by over 1 s.
-- `back`: so many are put back now.
local function tokens(m, back)
  local burst, ms = math.max(1, floor(m.rate / 10)), now - m.tokens_at
  return math.min(burst, (ms > -1000 and m.tokens or burst) + math.max(0, ms) * m.rate / m.per
    + (back or 0))
end

-- Jobs that were claimed and never started cost nothing: each gives its token back. (One that was
-- taken over paid none; but its takeover was free, and so is its return.)
local function refund(m, unstarted)
  if m.rate > 0 and unstarted > 0 then
    m.tokens, m.tokens_at = tokens(m, unstarted), now
    call('HSET', META, 'tokens', string.format('%.6f', m.tokens), 'tokens_at', stamp)
  end
  return m
end

-- When the rate lets the next job start; 0: now.
local function next_token(m)
  local have = m.rate > 0 and tokens(m) or 1
  return have < 1 and now + math.ceil((1 - have) * m.per / m.rate) or 0
end

-- The earliest time at which a claim could succeed; nil: not by time alone, or only at the end of
-- a lease that is so far away that a check comes before it. Leases are renewed, and most jobs are
-- done long before: nobody is woken to wait for that. And when the first lease that ends in this time
-- is over; nil: there is none.
local function next_claim(m)
  if m.paused then
    return nil
  end
  local first = call('ZRANGE', RUNNING, 0, 0, 'WITHSCORES')
  local over = tonumber(first[2] or false)
  over = over and over <= now + WATCHED_MS and over or nil
  if m.max_running > 0 and first[2] and call('ZCARD', RUNNING) >= m.max_running then
    return over, over
  end
  local at = over
  local head = call('ZRANGE', SCHEDULE, 0, 0, 'WITHSCORES')
  if head[2] then
    local due = math.max(tonumber(head[2]), next_token(m))
    if not at or due < at then
      at = due
    end
  end
  return at, over
end

-- The baton rule, at the end of every script that can change when a claim could succeed. `wake`
-- holds at most one member, whose score is the time, or 0 for at once (who pops it knows this
-- clock only by what it heard last); whoever pops it owns its time. `promised` is the time for
-- which somebody has the baton or keeps its timer; only an earlier one wakes somebody. One that has
-- come while nothing is due is over: others took what it was for. `clear`: the promise was ours, or
-- is doubted. `earliest`: not before (a claim that got nothing must not leave a baton that is due).
-- A score that is beyond all time (inf, 1e300) is not due: without its bound it would be no number
-- for Redis, and a worker would claim in vain for ever.
-- enqueue, claim and complete follow the rule by themselves where they know enough for that.
local function baton(m, clear, earliest)
  m.high = heed_clock(m.high)
  local at, over = next_claim(m)
  if not at then
    if m.promised then
      call('DEL', WAKE)
      call('HDEL', META, 'promised')
    end
    return 0
  end
  at = math.min(TIME_MAX, math.max(floor(at), earliest or now))
  local promised = m.promised
  if clear or (promised and promised < (at > now and now + 1 or now - BROKEN_MS)) then
    promised = nil
  end
  if not promised or at < promised then
    open_writes()
    local when = at <= now and stamp or string.format('%d', at)
    call('ZADD', WAKE, at <= now and '0' or when, 'baton')
    call('HSET', META, 'promised', when)
    m.promised = at
  end
  return at, over
end
