-- each.lua - commands for long lists.
--- @include "lib/slice.lua"

-- One command for a list of any length.
local function each(command, key, list)
  for i = 1, #list, SLICE do
    call(command, key, unpack(list, i, math.min(i + SLICE - 1, #list)))
  end
end
