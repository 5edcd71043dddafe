-- leave.lua - the one door out, for all scripts but `complete`, which takes the step as it is.
--- @include "lib/keys.lua"
--- @include "lib/key_crashes.lua"
--- @include "lib/key_cancels.lua"
--- @include "lib/key_expires.lua"
--- @include "lib/key_waits.lua"

-- These jobs end; lib/leaving.lua explains the arguments.
local function leave(how, ids, set, locks, voids)
  if #ids == 0 then
    return
  end
  local from, marked = 1, call('EXISTS', CRASHES, CANCELS, WAITS) > 0
  local expiring = call('EXISTS', EXPIRES) == 1
  local uses = call('HGET', META, 'uses')
  local keyed, unparked = uses and string.find(uses, 'u', 1, true), nil
  --- @step "lib/leaving.lua"
end
