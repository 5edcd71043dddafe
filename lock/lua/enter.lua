-- Take a lock, or several of one tag, all or none; or stand in line for them.
--
--  KEYS[1]   prefix      hf:lock:{tag}:
--  ARGV[1]   owner       of 128 random bits, unless an owner holds several times
--  ARGV[2]   hold        unique for each acquisition
--  ARGV[3]   client      whose inbox hears of the grant
--  ARGV[4]   mode        x alone, s shared, p with permits
--  ARGV[5]   permits     with p: how many, else 1
--  ARGV[6]   limit       with p: of how many, else 0
--  ARGV[7]   flags       letters: w (wait), r (reentrant), c (a cell; with one name, mode x)
--  ARGV[8]   lease       ms, at least 1
--  ARGV[9]   not_after   ms on Redis's clock; 0: no limit
--  ARGV[10..] names      1 to 16, in order, each once
--  returns   {OK, now, fence} | {WAITING, now, place, watch, number} (watch: when to ask again at
--            the latest, because a lease before it ends; 0: at its third; number: below the fence
--            of its grant) | {TAKEN, now, until, name} (until: when a lease before it ends) | {DEADLOCK,
--            now, name} (the owner has it already: it is not reentrant, an upgrade, or more
--            permits) | {LATE, now} | {LIMIT, now, limit} (the lock has another number of permits,
--            or its owner 256 holds) | {LOST, now} (of several that it has some are gone: give
--            them back first). Sent twice: the same.
local LIMIT, HOLDS = -12, 256
local owner, hold, mode = ARGV[1], ARGV[2], ARGV[4]
local permits, lease = tonumber(ARGV[5]), tonumber(ARGV[8])
local flag = function(letter)
  return string.find(ARGV[7], letter, 1, true) ~= nil
end
if late(ARGV[9]) or lease < 1 then
  return { LATE, now }
end
local lease_end = string.format('%.0f', now + lease)

-- Most of the time nobody is there: of one line no key exists. Nil: it is not so, or not asked for.
local function take_free(n)
  local x, e = P .. 'x:' .. n, P .. 'e:' .. n
  if ARGV[11] or mode == 'p' or flag('c') or
    call('EXISTS', x, e, P .. 'q:' .. n, P .. 'cell:' .. n) > 0 then
    return nil
  end
  open_writes()
  local fence, keys_end = next_fence(), string.format('%.0f', now + lease + CLEAN_MS)
  local entry = concat({ mode, 1, ARGV[5], fence, ARGV[3], n, hold .. '=' .. mode }, ' ')
  call('ZADD', x, lease_end, owner)
  call('HSET', e, owner, entry, '#', mode == 'x' and '1 0 0 0' or '0 1 0 0')
  call('PEXPIREAT', x, keys_end)
  call('PEXPIREAT', e, keys_end)
  return fence
end

local free = take_free(ARGV[10])
if free then
  return { OK, now, free }
end

local function first_end(l)
  local cell = call('PTTL', l.cell)
  if cell > 0 then
    return now + cell
  end
  return floor(call('ZRANGE', l.x, 0, 0, 'WITHSCORES')[2] or now)
end

local function take_cell(l)
  local value = call('GET', l.cell)
  if value and match(value, '^(.*):%d*$') == owner then
    if call('PTTL', l.cell) < lease then -- who asks again counts from this time
      call('PEXPIREAT', l.cell, lease_end)
    end
    return { OK, now, match(value, '(%d*)$') }
  end
  open_writes()
  settle(l)
  keep_changed()
  if value or l.waits or l.X + l.S + l.permits > 0 then
    return { TAKEN, now, first_end(l), l.name }
  end
  local fence = next_fence()
  call('SET', l.cell, owner .. ':' .. fence, 'NX', 'PXAT', lease_end)
  return { OK, now, fence }
end

if flag('c') then
  return take_cell(line(ARGV[10]))
end

-- What of it the owner has already; nothing is written until all of them were looked at.
local names, mine, known = {}, {}, 0
call('GET', P .. 'fence') -- one that is no string is refused before anything is written
for i = 10, #ARGV do
  local l = line(ARGV[i])
  local e = entry_of(l, owner)
  local ends = e and (e.granted or call('ZSCORE', l.q, owner)) and call('ZSCORE', l.x, owner)
  if ends and tonumber(ends) > now then
    if find_hold(e, hold) then
      known = known + 1
    elseif not flag('r') or e.mode ~= mode and not (e.mode == 'x' and mode == 's') or
      not e.granted and e.mode ~= mode or mode == 'p' and permits > e.permits then
      return { DEADLOCK, now, l.name }
    elseif #e.holds >= HOLDS then
      return { LIMIT, now, HOLDS }
    end
    mine[l.name] = e
  else
    names[#names + 1] = l.name
    if mode == 'p' and l.limit > 0 and l.limit ~= tonumber(ARGV[6]) and
      call('ZRANGEBYSCORE', l.x, '(' .. now, '+inf', 'LIMIT', 0, 1)[1] then
      return { LIMIT, now, l.limit }
    end
  end
end
if known > 0 and known < #ARGV - 9 then
  return { LOST, now }
end
open_writes()
for _, n in ipairs(names) do
  settle(line(n))
end
local wanted = { mode = mode, permits = permits, granted = false, fence = '0', client = ARGV[3],
  names = names, holds = { { hold, mode, ARGV[3] } } }
local blocked
for _, n in ipairs(names) do
  local l = line(n)
  l.waits = call('ZCARD', l.q) > 0
  l.limit = mode == 'p' and tonumber(ARGV[6]) or l.limit
  if not blocked and (l.waits or not fits(l, wanted)) then
    blocked = l
  end
end
if blocked and not flag('w') then
  keep_changed()
  return { TAKEN, now, first_end(blocked), blocked.name }
end

local fence, waits = nil, nil
for i = 10, #ARGV do
  local l = line(ARGV[i])
  local e = mine[l.name]
  if e then
    local ends = tonumber(call('ZSCORE', l.x, owner))
    for _, other in ipairs(e.holds) do
      other[4] = other[4] or ends
    end
    local place = find_hold(e, hold) or #e.holds + 1
    local before = e.holds[place] or { hold, mode, ARGV[3], 0 }
    before[4] = math.max(before[4], now + lease)
    e.holds[place] = before
    put_entry(l, owner, e)
    if ends < now + lease then
      call('ZADD', l.x, lease_end, owner)
    end
    end_holds(l, owner, e)
    l.changed = true
    fence = e.granted and e.fence or fence
    waits = waits or not e.granted and l or nil
  end
end
if #names > 0 then
  local place = next_fence()
  for _, n in ipairs(names) do
    local l = line(n)
    call('ZADD', l.x, lease_end, owner)
    if blocked then
      call('ZADD', l.q, place, owner)
      put_entry(l, owner, wanted)
      save(l)
      l.waits, waits = true, waits or blocked
    else
      grant(l, owner, wanted, place)
      fence = place
    end
  end
end
keep_changed()
if waits then
  local first = 0
  for i = 10, #ARGV do
    local ends = watch(line(ARGV[i]), owner)
    first = (first == 0 or ends > 0 and ends < first) and ends or first
  end
  return { WAITING, now, call('ZRANK', waits.q, owner) + 1, first, call('ZSCORE', waits.q, owner) }
end
return { OK, now, fence }
