-- leave.lua - the one door out, for all scripts but `complete`, which takes the step as it is.
--- @include "lib/keys.lua"
--- @include "lib/key_crashes.lua"
--- @include "lib/key_cancels.lua"
--- @include "lib/key_expires.lua"

-- These jobs end; lib/leaving.lua explains the arguments.
local function leave(how, ids, set, locks)
  if #ids == 0 then
    return
  end
  local from, marked, expiring = 1, call('EXISTS', CRASHES, CANCELS) > 0, call('EXISTS', EXPIRES) == 1
  --- @step "lib/leaving.lua"
end
