-- late.lua - requests that come after their time.
local function came_late(not_after)
  not_after = tonumber(not_after)
  return not_after > 0 and now > not_after
end
