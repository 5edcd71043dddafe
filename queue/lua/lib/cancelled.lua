-- cancelled.lua - ends a run with a request to cancel.

local cancelling = call('EXISTS', CANCELS) == 1

-- True: a command asked to cancel this run, and this overrides any other end. fence nil: the run
-- whose lease is over.
local function cancelled(id, fence)
  local asked = cancelling and call('HGET', CANCELS, id)
  if not asked then
    return false
  end
  if fence and fence ~= asked and asked ~= '*' then -- an earlier run
    call('HDEL', CANCELS, id)
    return false
  end
  leave('cancelled', { id }, RUNNING, { LOCK .. id })
  return true
end
