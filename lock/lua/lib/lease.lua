-- lease.lua - when leases begin and are over, by the clock of their line, and when to ask again.

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

-- What the caller shows counts if it was read of this line, not of an earlier one of its name: fences of a tag
-- rise, so the number of such a reading is below this line's birth. It is written by keep().
local function heed(l, machine, boot, shown)
  local all = read_readings(call('HGET', l.e, '@' .. machine))
  l.machine, l.boot, l.readings, l.machine_is_new = machine, tonumber(boot), all, not all[1]
  if shown == '' or not l.birth then
    return
  end
  local oldest = tonumber(call('ZRANGE', l.x, 0, 0, 'WITHSCORES')[2] or 0)
  if add_reading(all, shown, function(number)
    return number >= tonumber(l.birth)
  end, l.clock, l.shortest, oldest) then
    l.changed, l.noted = true, true
  end
end

local function keep_readings(l)
  if not l.machine_is_new or make_room(l.e, call('ZCARD', l.x) + 1, '@', l.clock, l.shortest) then
    call('HSET', l.e, '@' .. l.machine, write_readings(l.readings))
  end
end

-- Whether the machine should read again.
local function wants_reading(l)
  local last = l.readings[#l.readings]
  return not last or math.abs(l.boot - last.boot) >= l.shortest / APART -- its boot clock may have been set back
end

-- How old the oldest reading is that came after this start; 0: there is none.
local function age_of(l, start)
  local age = 0
  for _, r in ipairs(l.readings or {}) do
    age = r.clock > start and math.max(age, age_at(l.boot, r)) or age
  end
  return age
end

-- By Redis's clock a lease is over, or begins after now; and no younger reading shows that it was renewed
-- since. Its client may be dead, or Redis's clock was set.
local function seems_over(l, start, lease)
  for _, r in ipairs(l.readings or {}) do
    if r.clock <= start and l.boot - r.boot < lease then
      return false
    end
  end
  return start + lease <= now or start > now
end

-- The answer to a client that waits, or holds together with other clients of its owner:
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
