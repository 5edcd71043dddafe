-- May this holder still write? For data in Redis, put the same lines into the script that writes.
--
--  KEYS[1]  prefix      hf:lock:{tag}:
--  ARGV[1]  resource    the guarded resource, a name
--  ARGV[2]  fence       of the client that wants to write
--  ARGV[3]  owner
--  ARGV[4]  remember    ms for which the highest fence is remembered; 0: for ever
--  returns  {OK, now, highest} | {LOST, now, highest}: a higher fence was seen, or the same one of
--           another owner. Sent twice: the same.
--- @step "steps/guard.lua"
local key, fence, owner = P .. 'guard:' .. ARGV[1], ARGV[2], ARGV[3]
local highest, whose = match(call('GET', key) or '0 ', '^(%d+) (.*)$')

-- As text, because a number of Lua is exact up to 2^53 only: none has a zero in front.
local function is_lower(a, b)
  return #a < #b or #a == #b and a < b
end
if is_lower(fence, highest) or fence == highest and whose ~= owner then
  return { LOST, now, highest }
end
open_writes()
call('SET', key, fence .. ' ' .. owner)
if ARGV[4] ~= '0' then
  call('PEXPIRE', key, ARGV[4])
end
return { OK, now, fence }
