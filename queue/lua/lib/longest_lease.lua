-- longest_lease.lua - the longest lease of a queue.
--- @include "lib/key_workers.lua"

-- The longest lease that a job of this queue may have, ms.
local function longest_lease()
  local longest = 0
  for _, lease in ipairs(call('ZRANGE', LEASES, 0, -1)) do
    longest = math.max(longest, lease + 0)
  end
  return longest
end
