-- leaving.lua - leave(), by which all scripts but complete go through the one door out
-- (steps/leaving.lua), and requests to cancel.

-- These jobs end; steps/leaving.lua explains the arguments. leaving: nil: not known. Returns
-- `on_dead` of meta for lib/dying.lua.
local function leave(how, ids, set, locks, leaving)
  if #ids == 0 then
    return
  end
  local from, marked = 1, has_marks(P)
  local expiring = call('EXISTS', EXPIRES) == 1
  local m = call('HMGET', META, 'uses', 'on_dead')
  local uses = m[1]
  local unparked
  leaving = leaving or has(uses, UNIQUE_KEYS)
  --- @step "steps/leaving.lua"
  return m[2]
end

-- Ends a run with a request to cancel.
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
