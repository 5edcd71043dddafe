-- Keep leases alive, of holders and of those that wait. Creates nothing, never shortens.
--
--  KEYS[1]   prefix      hf:lock:{tag}: of the first entry
--  KEYS[2..] prefixes    one for each of the others
--  ARGV[1]   not_after   ms on Redis's clock; 0: no limit
--  ARGV[2..] owner, hold, lease (ms, at least 1), form (l line, c cell), name for each; at most 2048
--  returns   {OK, now, {code, what, ...}} | {LATE, now}; a code is OK (held until now + lease; what:
--            its fence), CANCEL (the same, and somebody asks for it to be given back), WAITING
--            (what: when to ask again at the latest, 0: not the head of its line), LOST (what:
--            1 when it was taken away), FAULT (a key of it is of another type). Sent twice: the same.
local FAULT = -40
if late(ARGV[1]) then
  return { LATE, now }
end
local answers = {}
local function answer(code, what)
  answers[#answers + 1], answers[#answers + 2] = code, what
end

local function renew_cell(l, owner, lease)
  local value = call('GET', l.cell)
  local holder, fence = match(value or '', '^(.*):(%d*)$')
  if holder ~= owner then
    return answer(LOST, '0')
  end
  if call('PTTL', l.cell) < lease then
    call('PEXPIREAT', l.cell, now + lease)
  end
  answer(OK, fence)
end

local function was_forced(owner, hold)
  local holds = redis.pcall('GET', P .. 'forced:' .. owner)
  return type(holds) == 'string' and string.find(holds, hold, 1, true) and 1 or 0
end

local function renew_entry(l, owner, hold, lease)
  local ends = call('ZSCORE', l.x, owner)
  local e = ends and tonumber(ends) > now and entry_of(l, owner)
  if not e or not find_hold(e, hold) or not e.granted and not call('ZSCORE', l.q, owner) then
    return answer(LOST, was_forced(owner, hold))
  end
  if tonumber(ends) < now + lease then
    call('ZADD', l.x, 'XX', string.format('%.0f', now + lease), owner)
    for _, key in ipairs({ l.x, l.e, not e.granted and l.q or nil }) do
      if call('PTTL', key) < lease + CLEAN_MS then
        call('PEXPIRE', key, lease + CLEAN_MS)
      end
    end
  end
  if not e.granted then
    settle(l)
    e = entry_of(l, owner)
  end
  if e.granted then
    answer(e.revoked == '1' and CANCEL or OK, e.fence)
  else
    answer(WAITING, watch(l, owner))
  end
end

local function renew(owner, hold, lease, form, name)
  if lease < 1 then
    answer(LOST, '0')
  elseif form == 'c' then
    renew_cell(line(name), owner, lease)
  else
    renew_entry(line(name), owner, hold, lease)
  end
end

-- One that is broken shall not be the end of the others.
open_writes()
for k = 1, #KEYS do
  local i = 5 * k - 3
  if KEYS[k] ~= P then
    pcall(keep_changed)
    lines = {}
    P = KEYS[k]
  end
  if not pcall(renew, ARGV[i], ARGV[i + 1], tonumber(ARGV[i + 2]), ARGV[i + 3], ARGV[i + 4]) then
    answers[2 * k - 1], answers[2 * k] = FAULT, '0'
  end
end
pcall(keep_changed)
return { OK, now, answers }
