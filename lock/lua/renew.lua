-- Keep the leases of holders and waiters alive, at any time of Redis's clock. Creates nothing.
--
--  KEYS[1]   prefix      hf:lock:{tag}: of the first entry
--  KEYS[2..] prefixes    one for each of the others
--  ARGV[1]   not_after   ms on Redis's clock; 0: no limit
--  ARGV[2]   machine     the client's
--  ARGV[3]   boot        ms on that machine's boot clock, before it was sent
--  ARGV[4..] for some that follow each other: how many, form (`line`; `only`, a line, by an owner
--            that has this hold only; `waits`, a line in which it waits; `read`, a line that was read while
--            it was held; `cell`), lease (ms, at least 1; 1: nothing is moved); and owner, hold (without
--            `only`), name of each; with `waits` and `read` also what was read last (acquire). Then for
--            others. At most 2048
--  returns   {OK, now, n, place, code, fence, after, clock, ...} | {LATE, now}. n: as many as were asked
--            for; then five for each that waited, or is not simply held for its lease: place (from 0
--            on), code, and more. OK: held, with its fence. CANCEL: the same, and its holders are asked
--            to give it back. WAITING. LOST: fence is 1 when it was taken away, else 0. FAULT: a key of
--            it is of another type. Clock: a reading, where it waits, or where its owner has holds of
--            several clients (its number is the fence); else 0. After: in how many ms to ask again at
--            the latest (acquire). Sent twice: the same.
--- @step "steps/guard.lua"
local FAULT = -40
local byte, find, right, HOLDS = string.byte, string.find, string.sub, 49 -- '1', the third letter
if came_late(ARGV[1]) then
  return { LATE, now }
end
local prefixes, args, all = KEYS, ARGV, #KEYS
local reply, n = { OK, now, all }, 3
local k, form = 0, nil -- which one it is about
local function answer(code, fence, after, clock)
  reply[n + 1], reply[n + 2], reply[n + 3], reply[n + 4], reply[n + 5] = k - 1, code, fence, after or 0, clock or 0
  n = n + 5
end

-- Times as text, since Redis prints a number that it is given slowly.
local lease, tail, now_text = nil, nil, string.format('%.0f', now)
local function set_lease(text)
  lease, tail = tonumber(text), ' ' .. text
end

local function renew_cell(l, owner)
  local value = call('GET', l.cell)
  if match(value or '', '^(.*):%d*$') ~= owner then
    return answer(LOST, '0')
  end
  if call('PTTL', l.cell) < lease then
    call('PEXPIREAT', l.cell, string.format('%.0f', now + lease))
  end
end

local function was_forced(owner, hold)
  local holds = redis.pcall('GET', P .. 'forced:' .. owner)
  return type(holds) == 'string' and (not hold or find(holds, hold, 1, true)) and 1 or 0
end

local function renew_entry(l, owner, hold, shown)
  local e = call('ZSCORE', l.x, owner) and entry_of(l, owner)
  if not e or hold and not find_hold(e, hold) or not e.granted and not call('ZSCORE', l.q, owner) then
    return answer(LOST, was_forced(owner, hold))
  end
  if lease > 1 then
    -- An owner that was made for one hold has it first.
    local mine = e.holds[hold and find_hold(e, hold) or 1]
    if mine[4] then
      mine[4], mine[5] = l.now, math.max(mine[5], lease)
    end
    if mine[4] or lease > e.lease then
      e.lease = math.max(e.lease, lease)
      change_holds(l, owner, e)
    end
    if not mine[4] then
      renew(l, owner, e)
    end
    l.changed = l.changed or call('PTTL', l.x) < LINE_MS / 2
  end
  if not e.granted or e.several then
    heed(l, ARGV[2], ARGV[3], shown)
    settle(l)
    e = entry_of(l, owner)
  end
  if not e.granted then
    local after = watch(l, owner)
    answer(WAITING, '0', after, read_clock(e.names))
  elseif e.several and lease > 1 then
    local after = watch_holds(l, e)
    answer(e.revoked and CANCEL or OK, e.fence, after, read_clock({ l.name }))
  elseif e.revoked or form == 'waits' then
    answer(e.revoked and CANCEL or OK, e.fence)
  end
end

local left, at = 0, 4 -- how many of a form follow, and where in ARGV the next one is
local function renew_any(owner, hold, name, shown)
  if prefixes[k] ~= P then
    pcall(keep_changed)
    lines, met = {}, 0
    P = prefixes[k]
  end
  if lease < 1 then
    answer(LOST, '0')
  elseif form == 'cell' then
    renew_cell(line(name), owner)
  else
    renew_entry(line(name), owner, hold, shown)
  end
end

-- Most are held, and need nothing else of their line: granted, not asked back, of this hold, of one
-- client only, and as long as before. The keys of a line end together. False: it is not so, and nothing
-- was done.
local function renew_held(prefix, owner, hold, name)
  local x, e = prefix .. 'x:' .. name, prefix .. 'e:' .. name
  local found = call('HMGET', e, owner, '#')
  local text, of_line = found[1], found[2]
  if not text or not of_line or byte(text, 3) ~= HOLDS or right(text, -#tail) ~= tail or
    hold and not find(text, hold, 1, true) or find(text, '@', 1, true) or call('PTTL', x) < LINE_MS / 2 then
    return false
  end
  local clock = right(of_line, -13) + 0
  local start = clock > now and string.format('%.0f', clock) or now_text
  return call('ZADD', x, 'XX', 'CH', start, owner) == 1 or call('ZSCORE', x, owner) ~= false
end

local function renew_all()
  while k < all do
    k = k + 1 -- first of all: a fault then ends one lock only
    if left == 0 then
      left, form = tonumber(args[at]), args[at + 1]
      set_lease(args[at + 2])
      at = at + 3
    end
    local alone = form == 'only'
    local owner, hold, name = args[at], not alone and args[at + 1], args[at + (alone and 1 or 2)]
    local reads = form == 'waits' or form == 'read'
    local shown = reads and args[at + 3] or ''
    left, at = left - 1, at + (alone and 2 or reads and 4 or 3)
    if form == 'cell' or form == 'waits' or lease < 1 or not renew_held(prefixes[k], owner, hold, name) then
      renew_any(owner, hold, name, shown)
    end
  end
end

-- A broken lock must not end the others.
open_writes()
while k < all do
  if not pcall(renew_all) then
    answer(FAULT, '0')
  end
end
pcall(keep_changed)
return reply
