-- wait_for_lock.lua - jobs whose locks are held elsewhere.

-- Held elsewhere: it waits in its set for the end of that lock.
local function wait_for_lock(set, id, lease)
  local left = call('PTTL', LOCK .. id)
  if left < 0 then
    call('PEXPIRE', LOCK .. id, lease)
    left = lease
  end
  call('ZADD', set, now + left + 1, id)
end
