-- trim_dead.lua - the bounds of `dead`.
--- @include "lib/keys.lua"
--- @include "lib/key_dead.lua"
--- @include "lib/bounds.lua"
--- @include "lib/each.lua"
--- @include "lib/clear_marks.lua"

-- Bounds `dead` by count and age, after so many jobs were brought; their records go with them. It
-- takes out as many as were brought, so that the bound holds after each script, and some more, so
-- that it is reached soon where it was lowered.
local function trim_dead(max, age, brought)
  for pass = 1, 2 do
    local old
    if pass == 1 then
      old = call('ZRANGEBYSCORE', DEAD, '-inf', now - math.min(DELAY_MAX, age), 'LIMIT', 0, 100)
    else
      local over = math.min(call('ZCARD', DEAD) - max, brought + 100)
      old = over > 0 and call('ZRANGE', DEAD, 0, over - 1) or {}
    end
    each('ZREM', DEAD, old)
    each('HDEL', JOBS, old)
    clear_marks(old)
  end
end
