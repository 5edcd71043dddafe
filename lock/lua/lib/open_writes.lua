-- open_writes.lua - how writing begins.

-- A full Redis accepts this, and then whatever else the script writes.
local function open_writes()
  call('DEL', P .. 'full')
end
