-- has_handler.lua - whether any live worker of the queue can handle a type.
--- @include "lib/key_workers.lua"
--- @include "lib/key_handles.lua"

local handled, lists -- by type; the types of each live worker

-- Its own handler for the type, or one for all types.
local function has_handler(type)
  type = tostring(type)
  if not lists then
    local alive = call('ZREVRANGEBYSCORE', WORKERS, '+inf', stamp, 'LIMIT', 0, 1000)
    handled, lists = {}, #alive > 0 and call('HMGET', HANDLES, unpack(alive)) or {}
  end
  for k = 1, handled[type] == nil and #lists or 0 do
    local types = lists[k]
    if types and (string.find(types, ' ' .. type .. ' ', 1, true) or string.find(types, ' * ', 1, true)) then
      handled[type] = true
      break
    end
  end
  handled[type] = handled[type] or false
  return handled[type]
end
