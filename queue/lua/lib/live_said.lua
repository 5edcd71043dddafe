-- live_said.lua - what the live workers of the queue have said of themselves (present).
--- @include "lib/key_workers.lua"
--- @include "lib/key_handles.lua"

local said

-- A text of each; false: it has not said anything yet.
local function live_said()
  if said then
    return said
  end
  said = {}
  local alive
  repeat
    alive = call('ZREVRANGEBYSCORE', WORKERS, '+inf', stamp, 'LIMIT', #said, 1000)
    for _, text in ipairs(#alive > 0 and call('HMGET', HANDLES, unpack(alive)) or {}) do
      said[#said + 1] = text
    end
  until #alive < 1000
  return said
end
