-- leave.lua - the one door out, for all scripts but `complete`, which takes the step as it is.

-- These jobs end; steps/leaving.lua explains the arguments. keys: their unique keys; nil: not known. Returns
-- `on_dead` of meta for lib/bury.lua.
local function leave(how, ids, set, locks, keys)
  if #ids == 0 then
    return
  end
  local from, marked = 1, has_marks(P)
  local expiring = call('EXISTS', EXPIRES) == 1
  local m = call('HMGET', META, 'uses', 'on_dead')
  local uses = m[1]
  local keyed, unparked = keys or uses and string.find(uses, 'u', 1, true), nil
  --- @step "steps/leaving.lua"
  return m[2]
end
