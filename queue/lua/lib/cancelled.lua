-- cancelled.lua - ends a run that is to be cancelled.
--- @include "lib/keys.lua"
--- @include "lib/key_lock.lua"
--- @include "lib/key_cancels.lua"
--- @include "lib/remove.lua"

local cancelling = call('EXISTS', CANCELS) == 1

-- True: a command asked to cancel this run, and that is what ends it, whatever else was to become
-- of it. fence nil: the run whose lease is over.
local function cancelled(id, fence)
  local asked = cancelling and call('HGET', CANCELS, id)
  if not asked then
    return false
  end
  call('HDEL', CANCELS, id)
  if fence and fence ~= asked and asked ~= '*' then
    return false
  end
  call('ZREM', RUNNING, id)
  call('DEL', LOCK .. id)
  remove({ id }, 'cancelled', true)
  return true
end
