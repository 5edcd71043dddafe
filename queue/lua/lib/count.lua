-- count.lua - the counters of a queue.
--- @include "lib/keys.lua"

local function count(field, by)
  if by > 0 then
    call('HINCRBY', META, field, by)
  end
end
