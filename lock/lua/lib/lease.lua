-- lease.lua - when leases begin and are over, by the clock of their line.

local function fits(l, e)
  if l.X > 0 or call('EXISTS', l.cell) == 1 then
    return false
  elseif e.mode == 'x' then
    return l.S == 0 and l.permits == 0
  elseif e.mode == 's' then
    return l.permits == 0
  end
  return l.S == 0 and l.permits + e.permits <= l.limit
end

local function note_lease(l, lease)
  if l.shortest == 0 or lease < l.shortest then
    l.shortest = lease
    save(l)
  end
end

-- The lease of an entry begins again.
local function renew(l, owner, e)
  call('ZADD', l.x, string.format('%.0f', l.now), owner)
  note_lease(l, e.lease)
end

-- The strongest mode of its holds.
local function mode_of(e)
  local mode = e.holds[1][2]
  for _, h in ipairs(e.holds) do
    mode = h[2] == 'x' and 'x' or mode
  end
  return mode
end

-- Its holds are others than before. While they belong to several clients, the entry begins with the
-- oldest of them: one of those clients may be dead, and the renewals of the others are not for its hold.
local function change_holds(l, owner, e)
  local first, last, lease = math.huge, 0, 0
  if e.granted then
    counts(l, e, -1)
  end
  e.mode = mode_of(e)
  if e.granted then
    counts(l, e, 1)
  end
  for _, hold in ipairs(e.holds) do
    first, last = math.min(first, hold[4] or 0), math.max(last, hold[4] or 0)
    lease = math.max(lease, hold[5] or 0)
    note_lease(l, hold[5] or e.lease)
  end
  e.lease = last > 0 and lease or e.lease
  put_entry(l, owner, e)
  if last > 0 then
    call('ZADD', l.x, 'XX', string.format('%.0f', e.several and first or last), owner)
  end
  if e.several and last > l.clock then -- a reading must be past all holds, not only the oldest
    l.clock, l.now = last, math.max(l.now, last)
    save(l)
  end
end

-- When the lease of an entry began: with the newest of its holds.
local function start_of(e, score)
  local start = tonumber(score)
  for _, hold in ipairs(e.holds) do
    start = math.max(start, hold[4] or 0)
  end
  return start
end
