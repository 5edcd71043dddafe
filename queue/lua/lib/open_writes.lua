-- open_writes.lua - how writing begins.

-- A full Redis accepts this, and then all other writes of the script.
local function open_writes()
  call('ZREM', WAKE, '')
end
