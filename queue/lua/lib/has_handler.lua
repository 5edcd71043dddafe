-- has_handler.lua - whether any live worker of the queue can handle a type.

local handled_types = {} -- by type

-- Its own handler for the type, or one for all types.
local function has_handler(type)
  type = tostring(type)
  local lists = handled_types[type] == nil and live_said() or {}
  for k = 1, #lists do
    local types = lists[k]
    if types and (string.find(types, ' ' .. type .. ' ', 1, true) or string.find(types, ' * ', 1, true)) then
      handled_types[type] = true
      break
    end
  end
  handled_types[type] = handled_types[type] or false
  return handled_types[type]
end
