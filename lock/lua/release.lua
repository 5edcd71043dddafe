-- Give a lock back, or several of one tag, or leave their line; or go from alone to shared.
--
--  KEYS[1]   prefix      hf:lock:{tag}:
--  ARGV[1]   owner
--  ARGV[2]   hold        of the acquisition that ends
--  ARGV[3]   how         `cell`, `downgrade` (this hold is shared from now on), or `-`
--  ARGV[4]   not_after   ms on Redis's clock; 0: no limit
--  ARGV[5]   machine     the client's
--  ARGV[6]   shown       what it has read last (acquire), or ''; it stays as evidence
--  ARGV[7..] names
--  returns   {OK, now, code, left, ...} | {LATE, now}, code and left for each name: RELEASED 0
--            (also: it has left the line), STILL_HELD 1 (left: holds of its owner that remain),
--            EXPIRED 2 (it is gone), NOT_OWNER 3 (and another owner has it). Sent twice:
--            EXPIRED or NOT_OWNER; a downgrade: the same.
--- @step "steps/guard.lua"
local RELEASED, STILL_HELD, EXPIRED, NOT_OWNER = 0, 1, 2, 3
local owner, hold = ARGV[1], ARGV[2]
if came_late(ARGV[4]) then
  return { LATE, now }
end
local cell, downgrade = ARGV[3] == 'cell', ARGV[3] == 'downgrade'
local reply = { OK, now }

-- The usual case: the only line contains only its owner, with this one hold.
-- False: it is not so, and nothing was done.
local function leave_alone(n)
  local x, e = P .. 'x:' .. n, P .. 'e:' .. n
  local all = not ARGV[8] and call('ZRANGE', x, 0, 1) or {}
  if #all ~= 1 or all[1] ~= owner then
    return false
  end
  local entry = call('HGET', e, owner)
  local at = entry and string.find(entry, ' ' .. hold .. '=', 1, true)
  if not at or not match(string.sub(entry, at + #hold + 3), '^ %d+$') then
    return false
  end
  call('ZREM', x, owner)
  call('DEL', e, P .. 'q:' .. n)
  return true
end

if not cell and not downgrade and leave_alone(ARGV[7]) then
  return { OK, now, RELEASED, 0 }
end

local function not_ours(l)
  local taken = l.X > 0 or call('EXISTS', l.cell) == 1
  return taken and NOT_OWNER or EXPIRED, 0
end

local function leave_cell(l)
  local value = call('GET', l.cell)
  if not value or match(value, '^(.*):%d*$') ~= owner then
    return not_ours(l)
  end
  call('DEL', l.cell)
  return RELEASED, 0
end

local function leave_line(l)
  local e = entry_of(l, owner)
  local place = e and find_hold(e, hold)
  if not place then
    return not_ours(l)
  end
  if downgrade then
    e.holds[place][2] = 's'
  elseif #e.holds == 1 then
    take_out(l, owner, e)
    return RELEASED, 0
  else
    table.remove(e.holds, place)
  end
  change_holds(l, owner, e)
  return STILL_HELD, #e.holds
end

for i = 7, #ARGV do
  heed(line(ARGV[i]), ARGV[5], 0, ARGV[6])
end
call('GET', P .. 'fence')
open_writes()
for i = 7, #ARGV do
  local l = line(ARGV[i])
  reply[#reply + 1], reply[#reply + 2] = (cell and leave_cell or leave_line)(l)
end
for i = 7, #ARGV do
  local l = line(ARGV[i])
  l.waits = call('ZCARD', l.q) > 0
  promote(l)
end
keep_changed()
return reply
