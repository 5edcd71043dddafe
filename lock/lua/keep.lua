-- Keep leases alive, of holders and of those that wait. Creates nothing, never shortens.
--
--  KEYS[1]   prefix      hf:lock:{tag}: of the first entry
--  KEYS[2..] prefixes    one for each of the others
--  ARGV[1]   not_after   ms on Redis's clock; 0: no limit
--  ARGV[2..] for some that follow each other: how many, form (l line, o line, by an owner that has this
--            hold only, w line in which it waits, c cell), lease (ms, at least 1); and owner, hold
--            (not with o), name of each. Then for others. At most 2048
--  returns   {OK, now, n, place, code, what, ...} | {LATE, now}. n: as many as were asked for; place,
--            from 0 on, code and what of each that is not simply held until now + lease, or that
--            waited: OK (held; what: its fence), CANCEL (the same, and somebody asks for it to be
--            given back), WAITING (what: when to ask again at the latest, because a lease before it
--            ends; 0: at its third), LOST (what: 1 when it was taken away), FAULT (a key of it is of
--            another type). Sent twice: the same.
local FAULT = -40
local byte, find, HOLDS = string.byte, string.find, 49 -- '1', the third letter of an entry
if late(ARGV[1]) then
  return { LATE, now }
end
local prefixes, args, all = KEYS, ARGV, #KEYS
local reply, n = { OK, now, all }, 3
local k = 0 -- which one it is about
local function answer(code, what)
  reply[n + 1], reply[n + 2], reply[n + 3] = k - 1, code, what
  n = n + 3
end

-- Times as text, since Redis prints a number that it is given slowly.
local lease, last, lease_end, keep_ms, keys_end
local function set_lease(ms)
  lease, last, keep_ms = ms, now + ms, ms + CLEAN_MS
  lease_end = string.format('%.0f', last)
  keys_end = string.format('%.0f', last + CLEAN_MS)
end

local function renew_cell(l, owner)
  local value = call('GET', l.cell)
  if match(value or '', '^(.*):%d*$') ~= owner then
    return answer(LOST, '0')
  end
  if call('PTTL', l.cell) < lease then
    call('PEXPIREAT', l.cell, lease_end)
  end
end

local function was_forced(owner, hold)
  local holds = redis.pcall('GET', P .. 'forced:' .. owner)
  return type(holds) == 'string' and (not hold or find(holds, hold, 1, true)) and 1 or 0
end

local function renew_entry(l, owner, hold)
  local ends = call('ZSCORE', l.x, owner)
  local e = ends and tonumber(ends) > now and live_entry(l, owner)
  if not e or hold and not find_hold(e, hold) or not e.granted and not call('ZSCORE', l.q, owner) then
    return answer(LOST, was_forced(owner, hold))
  end
  -- An owner that was made for one hold has it first.
  local mine = e.holds[hold and find_hold(e, hold) or 1]
  if mine[4] then
    mine[4] = math.max(mine[4], last)
    change_holds(l, owner, e)
  elseif tonumber(ends) < now + lease then
    call('ZADD', l.x, 'XX', lease_end, owner)
    for _, key in ipairs({ l.x, l.e, not e.granted and l.q or nil }) do
      if call('PTTL', key) < lease + CLEAN_MS then
        call('PEXPIREAT', key, keys_end)
      end
    end
  end
  if not e.granted then
    settle(l)
    e = entry_of(l, owner)
  end
  if e.granted then
    answer(e.revoked and CANCEL or OK, e.fence)
  else
    answer(WAITING, watch(l, owner))
  end
end

local form, left, at = nil, 0, 2 -- of the run; how many of it, and where in ARGV the next one is
local function renew_any(owner, hold, name)
  if prefixes[k] ~= P then
    pcall(keep_changed)
    lines = {}
    P = prefixes[k]
  end
  if lease < 1 then
    answer(LOST, '0')
  elseif form == 'c' then
    renew_cell(line(name), owner)
  else
    renew_entry(line(name), owner, hold)
  end
end

-- Most are held, and need nothing else of their line: granted, not asked back, of this hold, and of one
-- client only. The keys of a line end together. False: it is not so, and nothing was done.
local function renew_held(prefix, owner, hold, name)
  local x, e = prefix .. 'x:' .. name, prefix .. 'e:' .. name
  local ends = tonumber(call('ZSCORE', x, owner) or 0)
  local text = ends > now and call('HGET', e, owner)
  if not text or byte(text, 3) ~= HOLDS or hold and not find(text, hold, 1, true) or
    find(text, '@', 1, true) then
    return false
  end
  if ends < last then
    call('ZADD', x, 'XX', lease_end, owner)
    if call('PTTL', x) < keep_ms then
      call('PEXPIREAT', x, keys_end)
      call('PEXPIREAT', e, keys_end)
    end
  end
  return true
end

local function renew_all()
  while k < all do
    k = k + 1 -- first of all, so that a fault is the end of one only
    if left == 0 then
      left, form = tonumber(args[at]), args[at + 1]
      set_lease(tonumber(args[at + 2]))
      at = at + 3
    end
    local alone = form == 'o'
    local owner, hold, name = args[at], not alone and args[at + 1], args[at + (alone and 1 or 2)]
    left, at = left - 1, at + (alone and 2 or 3)
    if form == 'c' or form == 'w' or lease < 1 or not renew_held(prefixes[k], owner, hold, name) then
      renew_any(owner, hold, name)
    end
  end
end

-- One that is broken shall not be the end of the others.
open_writes()
while k < all do
  if not pcall(renew_all) then
    answer(FAULT, '0')
  end
end
pcall(keep_changed)
return reply
