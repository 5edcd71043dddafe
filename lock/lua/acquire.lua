-- Take a lock, or several of one tag, all or none; or stand in line for them.
--
--  KEYS[1]   prefix      hf:lock:{tag}:
--  ARGV[1]   owner       of 128 random bits, unless an owner holds several times
--  ARGV[2]   hold        unique for each acquisition
--  ARGV[3]   client      whose inbox hears of the grant
--  ARGV[4]   mode        x alone, s shared, p with permits
--  ARGV[5]   permits     with p: how many, else 1
--  ARGV[6]   limit       with p: of how many, else 0
--  ARGV[7]   flags       words: wait, reentrant, cell (a cell; with one name, mode x); `-`: none
--  ARGV[8]   lease       ms, at least 1
--  ARGV[9]   not_after   ms on Redis's clock; 0: no limit
--  ARGV[10]  machine     the client's, at most 96 bytes
--  ARGV[11]  boot        ms on that machine's boot clock, before it was sent
--  ARGV[12]  shown       what it has read last, `number:clock:boot:redis`, or '' (lib/lease.lua)
--  ARGV[13..] names      1 to 16, in order, each once
--  returns   {OK, now, fence} | {WAITING, now, place, clock, number, after} (clock: a reading; number:
--            below the fence of its grant, and of the reading; after: in how many ms to
--            ask again at the latest, because a lease before it may be over; 0: at its third) |
--            {TAKEN, now, name, clock, number, silent, after} (clock: a reading, 0: the machine has a
--            new one; silent: for this many ms, by Redis's clock, no holder has renewed, and after: in
--            how many ms that can be proved; 0: a holder lives) | {DEADLOCK, now, name} (the owner
--            has it already: it is not reentrant, an upgrade, or more permits) | {LATE, now} |
--            {LIMIT, now, limit} (the lock has another number of permits, or its owner 256 holds) |
--            {LOST, now} (of several that it has some are gone: give them back first). Sent twice:
--            the same.
--- @step "steps/guard.lua"
local LIMIT, HOLDS, FIRST, LOOK = -12, 256, 13, 100
local owner, hold, mode = ARGV[1], ARGV[2], ARGV[4]
local permits, lease = tonumber(ARGV[5]), tonumber(ARGV[8])
local flag = function(word)
  return string.find(ARGV[7], word, 1, true) ~= nil
end
if came_late(ARGV[9]) or lease < 1 then
  return { LATE, now }
end

-- The usual case: the line is empty, and none of its keys exists. Nil: it is not so, or not asked for.
local function take_free(n)
  local x, e = P .. 'x:' .. n, P .. 'e:' .. n
  if ARGV[FIRST + 1] or mode == 'p' or flag('cell') or
    call('EXISTS', x, e, P .. 'q:' .. n, P .. 'cell:' .. n) > 0 then
    return nil
  end
  open_writes()
  local fence, granted = next_fence(), mode == 'x' and '1 0 0 0' or '0 1 0 0'
  call('ZADD', x, string.format('%.0f', now), owner)
  call('HSET', e, owner,
    concat({ mode, 1, ARGV[5], fence, ARGV[3], n, hold .. '=' .. mode, ARGV[8] }, ' '),
    '#', concat({ granted, ARGV[8], fence, '0000000000000' }, ' '))
  call('PEXPIRE', x, LINE_MS)
  call('PEXPIRE', e, LINE_MS)
  return fence
end

local free = take_free(ARGV[FIRST])
if free then
  return { OK, now, free }
end

-- Reads the clocks of all lines that were asked for; those that exist have a birth. The number is that of the
-- youngest.
local function read_clocks()
  local names, number = {}, '0'
  for i = FIRST, #ARGV do
    local birth = line(ARGV[i]).birth
    if birth then
      names[#names + 1] = ARGV[i]
      number = tonumber(birth) > tonumber(number) and birth or number
    end
  end
  return read_clock(names), number
end

-- For how many ms no holder has renewed, and in how many that can be proved; 0, 0: one lives.
local function silence(l)
  local silent, after = math.huge, 0
  local all = call('ZRANGE', l.x, 0, LOOK - 1, 'WITHSCORES')
  for i = 1, #all, 2 do
    local e = entry_of(l, all[i])
    local start = e and start_of(e, all[i + 1])
    if e and not seems_over(l, start, e.lease) then
      return 0, 0
    elseif e then
      local age = age_of(l, start)
      silent, after = math.min(silent, math.max(1, age, now - start)), math.max(after, e.lease - age + 1)
    end
  end
  return after > 0 and silent or 0, after
end

-- Leases that seem over may be those of the dead, which only readings can prove. So a refused client leaves one.
local function taken(l)
  if call('PTTL', l.cell) > 0 then
    return { TAKEN, now, l.name, 0, 0, 0, 0 }
  end
  local silent, after = silence(l)
  local clock, number = 0, 0
  if wants_reading(l) then
    open_writes()
    clock, number = read_clocks()
    keep_changed()
  end
  return { TAKEN, now, l.name, clock, number, silent, after }
end

local function take_cell(l)
  local value, lease_end = call('GET', l.cell), string.format('%.0f', now + lease)
  if value and match(value, '^(.*):%d*$') == owner then
    if call('PTTL', l.cell) < lease then -- a client that asks again counts from this time
      call('PEXPIREAT', l.cell, lease_end)
    end
    return { OK, now, match(value, '(%d*)$') }
  end
  open_writes()
  settle(l)
  keep_changed()
  if value or l.waits or l.X + l.S + l.permits > 0 then
    return taken(l)
  end
  local fence = next_fence()
  call('SET', l.cell, owner .. ':' .. fence, 'NX', 'PXAT', lease_end)
  return { OK, now, fence }
end

for i = FIRST, #ARGV do
  heed(line(ARGV[i]), ARGV[10], ARGV[11], ARGV[12])
end
call('GET', P .. 'fence') -- one that is no string is refused before anything is written
if flag('cell') then
  return take_cell(line(ARGV[FIRST]))
end

open_writes()
for i = FIRST, #ARGV do
  settle(line(ARGV[i]))
end
keep_changed()

-- What of it the owner has already. Where that seems to be over, it may be of a process that is dead: then
-- this is another lock, with a fence of its own.
local names, mine, known = {}, {}, 0
for i = FIRST, #ARGV do
  local l = line(ARGV[i])
  local e = entry_of(l, owner)
  local score = e and (e.granted or call('ZSCORE', l.q, owner)) and call('ZSCORE', l.x, owner)
  if score then
    if find_hold(e, hold) then
      known = known + 1
    elseif seems_over(l, start_of(e, score), e.lease) then
      return taken(l)
    elseif not flag('reentrant') or e.mode ~= mode and not (e.mode == 'x' and mode == 's') or
      not e.granted and e.mode ~= mode or mode == 'p' and permits > e.permits then
      return { DEADLOCK, now, l.name }
    elseif #e.holds >= HOLDS then
      return { LIMIT, now, HOLDS }
    end
    mine[l.name] = e
  else
    names[#names + 1] = l.name
    if mode == 'p' and l.limit > 0 and l.limit ~= tonumber(ARGV[6]) and call('EXISTS', l.x) == 1 then
      local _, after = silence(l)
      return after > 0 and taken(l) or { LIMIT, now, l.limit }
    end
  end
end
if known > 0 and known < #ARGV - FIRST + 1 then
  return { LOST, now }
end
local wanted = { mode = mode, permits = permits, granted = false, fence = '0', client = ARGV[3],
  names = names, holds = { { hold, mode, ARGV[3] } }, lease = lease }
local blocked
for _, n in ipairs(names) do
  local l = line(n)
  l.waits = call('ZCARD', l.q) > 0
  l.limit = mode == 'p' and tonumber(ARGV[6]) or l.limit
  if not blocked and (l.waits or not fits(l, wanted)) then
    blocked = l
  end
end
if blocked and not flag('wait') then
  return taken(blocked)
end

local fence, waits = nil, nil
for i = FIRST, #ARGV do
  local l = line(ARGV[i])
  local e = mine[l.name]
  if e then
    local start = tonumber(call('ZSCORE', l.x, owner))
    for _, other in ipairs(e.holds) do
      other[4], other[5] = other[4] or start, other[5] or e.lease
    end
    local place = find_hold(e, hold) or #e.holds + 1
    e.holds[place] = e.holds[place] or { hold, mode, ARGV[3] }
    e.holds[place][4], e.holds[place][5] = l.now, math.max(e.holds[place][5] or 0, lease)
    change_holds(l, owner, e)
    fence = e.granted and e.fence or fence
    waits = waits or not e.granted and l or nil
  end
end
if #names > 0 then
  local place = next_fence()
  for _, n in ipairs(names) do
    local l = line(n)
    l.birth = l.birth or place
    renew(l, owner, wanted)
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
  for i = FIRST, #ARGV do
    local after = watch(line(ARGV[i]), owner)
    first = (first == 0 or after > 0 and after < first) and after or first
  end
  local number = call('ZSCORE', waits.q, owner)
  return { WAITING, now, call('ZRANK', waits.q, owner) + 1,
    read_clock(entry_of(waits, owner).names), number, first }
end
return { OK, now, fence }
