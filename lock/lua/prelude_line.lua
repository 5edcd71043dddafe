-- prelude_line.lua - the line of a lock: reading it, who leaves it, who is granted.

local lines = {}
-- X, S, permits: what is granted; limit: of permits, as the oldest live entry said.
local function line(n)
  local l = lines[n]
  if not l then
    l = { name = n, x = P .. 'x:' .. n, q = P .. 'q:' .. n, e = P .. 'e:' .. n,
      cell = P .. 'cell:' .. n }
    local X, S, permits, limit = match(call('HGET', l.e, '#') or '', '^(%d+) (%d+) (%d+) (%d+)$')
    l.X, l.S = tonumber(X or 0), tonumber(S or 0)
    l.permits, l.limit = tonumber(permits or 0), tonumber(limit or 0)
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
  call('HSET', l.e, '#', concat({ l.X, l.S, l.permits, l.limit }, ' '))
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

-- Entries whose lease is over leave.
local function sweep(l)
  local over = call('ZRANGEBYSCORE', l.x, '-inf', now, 'LIMIT', 0, SWEEP)
  for _, owner in ipairs(over) do
    take_out(l, owner, entry_of(l, owner))
  end
end

-- All that hold it, and when their leases end: owner, end, ...; however many wait.
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
    local e = call('ZSCORE', l.x, owner) and entry_of(l, owner)
    if not e then
      take_out(l, owner, nil)
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

-- The strongest of what its holds want.
local function mode_of(e)
  local mode = e.holds[1][2]
  for _, h in ipairs(e.holds) do
    mode = h[2] == 'x' and 'x' or mode
  end
  return mode
end

-- Its holds are others than before. The entry lasts as long as the last of them.
local function change_holds(l, owner, e)
  local last = 0
  if e.granted then
    counts(l, e, -1)
  end
  e.mode = mode_of(e)
  if e.granted then
    counts(l, e, 1)
  end
  for _, hold in ipairs(e.holds) do
    last = math.max(last, hold[4] or 0)
  end
  if last > 0 then
    call('ZADD', l.x, 'XX', string.format('%.0f', last), owner)
  end
  put_entry(l, owner, e)
end

-- Where several clients share an entry, one of them may be dead: the holds leave whose own lease is
-- over. The renewals of the others keep the entry, not these holds.
local function end_holds(l, owner, e)
  local live = {}
  for _, hold in ipairs(e.holds) do
    if not hold[4] or hold[4] > now then
      live[#live + 1] = hold
    end
  end
  if #live == #e.holds or #live == 0 then
    return
  end
  e.holds = live
  change_holds(l, owner, e)
  if e.granted then
    promote(l)
  end
end

local function live_entry(l, owner)
  local e = entry_of(l, owner)
  if e then
    end_holds(l, owner, e)
  end
  return e
end

-- At the end of what changes a line: its keys never end before the last lease that is in it.
local function keep(l)
  local last = call('ZRANGE', l.x, -1, -1, 'WITHSCORES')[2]
  if not last then
    call('DEL', l.q, l.e)
    return
  end
  for _, key in ipairs({ l.x, l.q, l.e }) do
    call('PEXPIREAT', key, string.format('%.0f', last + CLEAN_MS))
  end
end

local function keep_changed()
  for _, l in pairs(lines) do
    if l.changed then
      keep(l)
    end
  end
end

-- When the lease ends that an entry waits behind: at the head the first one of those that hold it,
-- else that of the entry before it, which may have been granted by then to one that is dead. It asks
-- again then, if nothing came before; 0: there is none, or it does not wait.
local function watch(l, owner)
  local place = call('ZRANK', l.q, owner)
  if not place then
    return 0
  elseif place > 0 then
    local before = call('ZRANGE', l.q, place - 1, place - 1)[1]
    return floor(call('ZSCORE', l.x, before) or 0)
  end
  local cell = call('PTTL', l.cell)
  if cell > 0 then
    return now + cell
  end
  local ends = call('ZRANGE', l.x, 0, 1, 'WITHSCORES')
  local i = ends[1] == owner and 4 or 2
  return ends[i] and floor(ends[i]) or 0
end
