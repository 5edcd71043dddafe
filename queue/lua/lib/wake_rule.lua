-- wake_rule.lua - when a worker should claim, and how that is made known (docs/design.md).
--- @include "lib/wake_times.lua"
--- @include "lib/bounds.lua"
--- @include "lib/keys.lua"
--- @include "lib/open_writes.lua"
--- @include "lib/read_meta.lua"
--- @include "lib/heed_clock.lua"
--- @include "lib/limits.lua"

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
