-- wake.lua - the end of a script that does not know when the next claim could succeed: it looks, and
-- follows the wake rule.
--- @include "lib/bounds.lua"
--- @include "lib/keys.lua"
--- @include "lib/open_writes.lua"
--- @include "lib/read_meta.lua"
--- @include "lib/heed_clock.lua"
--- @include "lib/limits.lua"
--- @include "lib/watched.lua"
--- @include "lib/wake_rule.lua"

-- The earliest time at which a claim could succeed; nil: not by time alone, or only at the end of a
-- lease that is so far away that a check comes before it. Leases are renewed, and most jobs are done
-- long before: no worker is woken to wait for that. And when the first lease that ends in this time is
-- over; nil: there is none.
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

-- `earliest`: not before (a claim that got nothing must not leave a baton that is due). A score beyond
-- all time (inf, 1e300) is not due: without the bound it would be no number for Redis, and a worker
-- would claim in vain for ever.
local function wake(m, doubted, earliest)
  m.high = heed_clock(m.high)
  local at, over = next_claim(m)
  at = at and math.min(TIME_MAX, math.max(floor(at), earliest or now))
  if at and wake_rule(at, m.next_wake, doubted, true) then
    open_writes()
  end
  m.next_wake = wake_rule(at, m.next_wake, doubted) or m.next_wake
  return at or 0, over
end
