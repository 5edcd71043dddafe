-- line.lua - a line: reading and writing it, and its entries.
--
-- Redis's clock may be set, forward and back, so it never decides that a lease is over. Each line has
-- a clock of its own, in ms, that only counts on. A lease begins at Redis's time or at the line's
-- clock, whichever is ahead. A client that wants the lock reads the line's clock; a reading moves the
-- clock past all leases that began before. So readings prove that leases are over (lib/readings.lua).

local lines = {}

-- X, S, permits: the present grants; limit: of permits, by the oldest live entry; shortest: the
-- shortest lease that was in it; birth: a number that no other line of its tag has.
local function line(n)
  local l = lines[n]
  if not l then
    l = { name = n, x = P .. 'x:' .. n, q = P .. 'q:' .. n, e = P .. 'e:' .. n,
      cell = P .. 'cell:' .. n }
    local X, S, permits, limit, shortest, birth, clock =
      match(call('HGET', l.e, '#') or '', '^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+)$')
    l.X, l.S = tonumber(X or 0), tonumber(S or 0)
    l.permits, l.limit = tonumber(permits or 0), tonumber(limit or 0)
    l.shortest, l.birth, l.clock = tonumber(shortest or 0), birth, tonumber(clock or 0)
    l.now = math.max(now, l.clock)
    meet_fence(birth)
    local all, waiting = call('ZCARD', l.x), call('ZCARD', l.q)
    l.waits = waiting > 0 and all > 0
    if all <= waiting then -- it has no holder, even if some of its keys were lost
      l.X, l.S, l.permits = 0, 0, 0
    end
    lines[n] = l
  end
  return l
end

local function entry_of(l, owner)
  local text = call('HGET', l.e, owner)
  local e = text and read_entry(text)
  meet_fence(e and e.fence)
  return e
end

local function put_entry(l, owner, e)
  call('HSET', l.e, owner, write_entry(e))
  l.changed = true
end

-- Written at once: the grants in Redis are right wherever a script ends.
local function save(l)
  l.birth = l.birth or next_fence()
  call('HSET', l.e, '#', concat({ l.X, l.S, l.permits, l.limit, string.format('%.0f', l.shortest),
    l.birth, string.format('%013.0f', l.clock) }, ' '))
  l.changed = true
end

local function counts(l, e, by)
  if e.mode == 'x' then
    l.X = l.X + by
  elseif e.mode == 's' then
    l.S = l.S + by
  else
    l.permits = l.permits + by * e.permits
  end
  save(l)
end

local function take_out(l, owner, e)
  call('ZREM', l.x, owner)
  call('ZREM', l.q, owner)
  call('HDEL', l.e, owner)
  if e and e.granted then
    counts(l, e, -1)
  end
  l.changed = true
end
