-- has_handler.lua - whether any live worker of the queue can handle a type.
--- @include "lib/live_said.lua"

local handled = {} -- by type

-- Its own handler for the type, or one for all types.
local function has_handler(type)
  type = tostring(type)
  local lists = handled[type] == nil and live_said() or {}
  for k = 1, #lists do
    local types = lists[k]
    if types and (string.find(types, ' ' .. type .. ' ', 1, true) or string.find(types, ' * ', 1, true)) then
      handled[type] = true
      break
    end
  end
  handled[type] = handled[type] or false
  return handled[type]
end
