-- wait_for_lock.lua - jobs whose locks are held elsewhere.
--- @include "lib/keys.lua"
--- @include "lib/key_lock.lua"

-- Held elsewhere: it waits in its set for the end of that lock.
local function wait_for_lock(set, id, lease)
  local left = call('PTTL', LOCK .. id)
  if left < 0 then
    call('PEXPIRE', LOCK .. id, lease)
    left = lease
  end
  local ends_at = now + left + 1
  call('ZADD', set, ends_at + ends_at % 2, id) -- an odd one would be marked
end
