-- open_writes.lua - how writing begins.
--- @include "lib/keys.lua"
--- @include "lib/key_wake.lua"

-- A full Redis accepts this, and then all other writes of the script.
local function open_writes()
  call('ZREM', WAKE, '')
end
