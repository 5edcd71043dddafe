-- next_fence.lua - the counter of a tag.
local FENCE_MS = 3600000 -- the counter ends this long after its last use

-- The highest fence that this script has met in lines. The counter may be gone: a step of Redis's clock ends it.
local met = 0

local function meet_fence(fence)
  met = math.max(met, tonumber(fence) or 0)
end

-- Rises for ever: also when a failover lost its last value, and when it ended meanwhile. It does not
-- end while it is ahead of Redis's clock, which was set back then.
local function next_fence()
  local last, micros = math.max(met, tonumber(call('GET', P .. 'fence') or 0)), time[1] * 1000000 + time[2]
  local fence = string.format('%.0f', math.max(last + 1, micros))
  call('SET', P .. 'fence', fence, 'PX', FENCE_MS + floor(math.max(0, last - micros) / 1000))
  return fence
end
