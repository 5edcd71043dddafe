-- wait.lua - the answer to a client that waits, or holds together with other clients of its owner:
-- a reading of the line's clock, and when to ask again.

-- Reads the clock of these lines together.
local function read_clock(names)
  local at = now
  for _, n in ipairs(names) do
    local last = call('ZRANGE', line(n).x, -1, -1, 'WITHSCORES')[2]
    at = math.max(at, line(n).clock + 1, last and last + 1 or 0)
  end
  for _, n in ipairs(names) do
    local l = line(n)
    l.clock, l.now = at, at
    save(l)
  end
  return string.format('%.0f', at)
end

-- In how many ms the lease may be over that an entry waits behind: at the head that of one of the
-- others, else that of the entry before it, which may be granted by then though its client is dead. The
-- head asks a third of that lease later at the latest: a reading that comes late proves late. 0: at its
-- own third.
local function watch(l, owner)
  local place = call('ZRANK', l.q, owner)
  local cell = place == 0 and call('PTTL', l.cell) or 0
  if not place or cell > 0 then
    return math.max(cell, 0)
  end
  local before = place > 0 and call('ZRANGE', l.q, place - 1, place - 1) or call('ZRANGE', l.x, 0, 1)
  local other = before[1] == owner and before[2] or before[1]
  local e, start = other and entry_of(l, other), other and call('ZSCORE', l.x, other)
  if not e or not start then
    return 0
  end
  local after = e.lease - age_of(l, tonumber(start)) + 1
  return math.max(1, place == 0 and math.min(after, floor(e.lease / 3) + 1) or after)
end

-- The same for one that holds it: in how many ms the lease of the first hold of its entry may be over.
local function watch_holds(l, e)
  local first = math.huge
  for _, hold in ipairs(e.holds) do
    first = math.min(first, hold[5] - age_of(l, hold[4]) + 1)
  end
  return math.max(1, first)
end
