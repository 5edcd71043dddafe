-- prelude_line.lua - the line of a lock: reading it, what leaves it, what is granted.
--
-- Redis's clock may be set, forward and back, so it never decides that a lease is over. Each line has
-- a clock of its own, in ms, that only counts on. A lease begins at Redis's time or at the line's
-- clock, whichever is ahead. A client that wants the lock reads the line's clock; a reading moves the
-- clock past all leases that began before. The client notes by its own clock when it had the answer,
-- and shows with its later requests what it has read and how long ago. A lease that began before a
-- reading is over when the reading is as old as the lease is long.

local lines = {}
-- X, S, permits: what is granted; limit: of permits, as the oldest live entry said; shortest: the
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
    local all, waiting = call('ZCARD', l.x), call('ZCARD', l.q)
    l.waits = waiting > 0 and all > 0
    if all <= waiting then -- nobody holds it, whatever was lost of its keys
      l.X, l.S, l.permits = 0, 0, 0
    end
    lines[n] = l
  end
  return l
end

local function entry_of(l, owner)
  local text = call('HGET', l.e, owner)
  return text and read_entry(text)
end

local function put_entry(l, owner, e)
  call('HSET', l.e, owner, write_entry(e))
  l.changed = true
end

-- Written at once, so that what is granted is told truly wherever a script ends.
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

-- The lease of an entry begins anew.
local function renew(l, owner, e)
  call('ZADD', l.x, string.format('%.0f', l.now), owner)
  note_lease(l, e.lease)
end

-- What the caller has read: `clock:age ...`, the newest first. The witness tells of which line: its
-- birth, or the place that the caller's entry still has in it.
local function heed(l, owner, witness, text)
  if text == '' or witness ~= l.birth and witness ~= call('ZSCORE', l.q, owner) then
    return
  end
  l.readings = {}
  for clock, age in string.gmatch(text, '(%d+):(%d+)') do
    l.readings[#l.readings + 1] = { clock = tonumber(clock), age = tonumber(age) }
  end
end

-- By Redis's clock a lease is over, or begins after now; and it was not renewed since the caller first
-- read the line's clock. Its client may be dead, or Redis's clock was set.
local function seems_over(l, start, lease)
  local first = l.readings and l.readings[#l.readings]
  return (start + lease <= now or start > now) and not (first and start >= first.clock)
end

-- How old the oldest reading is that came after this start; 0: there is none.
local function age_of(l, start)
  local age = 0
  for _, r in ipairs(l.readings or {}) do
    age = r.clock > start and r.clock <= l.clock and r.age or age
  end
  return age
end

-- The strongest of what its holds want.
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

-- What the caller has proved to be over leaves: entries, and holds of clients that share one.
local function sweep(l)
  local before
  for _, r in ipairs(l.readings or {}) do
    before = before or r.age >= l.shortest and string.format('(%.0f', r.clock)
  end
  for _, owner in ipairs(before and call('ZRANGEBYSCORE', l.x, '-inf', before, 'LIMIT', 0, SWEEP) or {}) do
    local e, live = entry_of(l, owner), {}
    local score = call('ZSCORE', l.x, owner)
    for _, hold in ipairs(e and e.holds or {}) do
      if age_of(l, hold[4] or tonumber(score)) < (hold[5] or e.lease) then
        live[#live + 1] = hold
      end
    end
    if #live == 0 then
      take_out(l, owner, e)
    elseif #live < #e.holds then
      e.holds = live
      change_holds(l, owner, e)
    end
  end
end

-- All that hold it, and when their leases began: owner, start, ...; however many wait.
local function holders_of(l)
  return call('ZDIFF', 2, l.x, l.q, 'WITHSCORES')
end

local function grant(l, owner, e, fence)
  e.granted, e.fence = true, fence
  call('ZREM', l.q, owner)
  counts(l, e, 1)
  put_entry(l, owner, e)
end

-- A hint; if it cannot be left there, the next renewal finds out. It names the holds, so that none
-- is taken for a later one of the same owner. Those that wait and those that hold listen apart. Each
-- client of its owner hears of its own holds.
local function tell(e, what, fence)
  local clients, messages = {}, {}
  for _, hold in ipairs(e.holds) do
    local client = hold[3]
    if not messages[client] then
      clients[#clients + 1], messages[client] = client, what .. ' ' .. fence
    end
    messages[client] = messages[client] .. ' ' .. hold[1]
  end
  for _, client in ipairs(clients) do
    local inbox = P .. 'in:' .. client .. (what == 'granted' and '' or '/held')
    redis.pcall('RPUSH', inbox, messages[client])
    redis.pcall('PEXPIRE', inbox, INBOX_MS)
  end
end

-- Its head is granted if it is the head of all lines that it waits in, and fits into each.
local function head_fits(owner, e)
  for _, n in ipairs(e.names) do
    local l = line(n)
    local mine = call('ZRANGE', l.q, 0, 0)[1] == owner and entry_of(l, owner)
    if not mine or not fits(l, mine) then
      return false
    end
  end
  return true
end

-- Grants what can be granted, from the head: strictly in order, so that nobody starves.
local function promote(l)
  for _ = 1, SWEEP do
    local owner = l.waits and call('ZRANGE', l.q, 0, 0)[1]
    if not owner then
      return
    end
    local start = call('ZSCORE', l.x, owner)
    local e = start and entry_of(l, owner)
    if not e then
      take_out(l, owner, nil)
    elseif start_of(e, start) + e.lease <= l.now then
      return -- it may be dead; its next renewal comes by if it is not
    else
      for _, n in ipairs(e.names) do
        sweep(line(n))
      end
      if not head_fits(owner, e) then
        return
      end
      local fence = next_fence()
      for _, n in ipairs(e.names) do
        local other = entry_of(line(n), owner)
        grant(line(n), owner, other, fence)
        for _, hold in ipairs(other.holds) do -- a hold may wait in some of the lines only
          if not find_hold(e, hold[1]) then
            e.holds[#e.holds + 1] = hold
          end
        end
      end
      tell(e, 'granted', fence)
      for _, n in ipairs(e.names) do
        if n ~= l.name then
          promote(line(n))
        end
      end
    end
  end
end

local function settle(l)
  sweep(l)
  promote(l)
end

-- At the end of what changes a line. Its keys end long after the last change, for that is by Redis's
-- clock.
local function keep(l)
  if call('EXISTS', l.x) == 0 then
    call('DEL', l.q, l.e)
    return
  end
  for _, key in ipairs({ l.x, l.q, l.e }) do
    call('PEXPIRE', key, LINE_MS)
  end
end

local function keep_changed()
  for _, l in pairs(lines) do
    if l.changed then
      keep(l)
    end
  end
end
