-- Take a lock away from its holder, or ask for it back.
--
--  KEYS[1]  prefix      hf:lock:{tag}:
--  ARGV[1]  name
--  ARGV[2]  owner       whose; '': of all that hold it
--  ARGV[3]  revoke      1: only ask; 0: take it away. The holder hears of either by a message
--  ARGV[4]  not_after   ms on Redis's clock; 0: no limit. Behind it a word for this request, or none
--  ARGV[5]  fence       only the hold that has it; '': any
--  returns  {OK, now, n} (how many it was taken from, or how many were asked; a cell cannot be
--           asked) | {LATE, now}. Later grants have higher fences. Sent twice: the
--           same; without a word the second may meet the next holder, so say whose.
--- @step "steps/guard.lua"
local known = answered(ARGV[4])
if known then
  return known
end
local l, whose, fence, n = line(ARGV[1]), ARGV[2], ARGV[5], 0
local revoke = ARGV[3] == '1'
local value = call('GET', l.cell)
local holders = whose ~= '' and { whose, 0 } or holders_of(l)
call('GET', P .. 'fence')
call('ZCARD', l.x)
open_writes()
if value and not revoke then
  local owner, of = match(value, '^(.*):(%d*)$')
  if (whose == '' or owner == whose) and (fence == '' or of == fence) then
    call('DEL', l.cell)
    n = 1
  end
end
for i = 1, #holders, 2 do
  local owner = holders[i]
  local e = entry_of(l, owner)
  if e and e.granted and (fence == '' or e.fence == fence) then
    n = n + 1
    if revoke then
      e.revoked = true
      put_entry(l, owner, e)
      tell(e, 'revoked', e.fence)
    else
      take_out(l, owner, e)
      local holds = {}
      for k, hold in ipairs(e.holds) do
        holds[k] = hold[1]
      end
      call('SET', P .. 'forced:' .. owner, concat(holds, ' '), 'PX', INBOX_MS)
      tell(e, 'forced', e.fence)
    end
  end
end
if n > 0 and not revoke then
  next_fence()
end
l.waits = call('ZCARD', l.q) > 0
promote(l)
keep_changed()
local reply = { OK, now, n }
return n > 0 and keep_answer(reply) or reply
