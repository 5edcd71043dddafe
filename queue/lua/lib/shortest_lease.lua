-- shortest_lease.lua - the shortest lease that a job of a queue may have, ms.

local function shortest_lease()
  local shortest = math.huge
  for _, lease in ipairs(call('ZRANGE', LEASES, 0, -1)) do
    shortest = math.min(shortest, lease + 0)
  end
  return shortest
end
