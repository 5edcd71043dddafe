-- trim_dead.lua - the bounds of `dead`.

-- Bounds `dead` by count and age, after this many jobs were added. It removes as many as were added,
-- to keep the bound after each script, and some more, to reach a lowered bound soon.
local function trim_dead(max, age, brought)
  local oldest = now - math.min(DELAY_MAX, age)
  leave('trimmed', call('ZRANGEBYSCORE', DEAD, '-inf', oldest, 'LIMIT', 0, 100), DEAD)
  local over = math.min(call('ZCARD', DEAD) - max, brought + 100)
  if over > 0 then
    leave('trimmed', call('ZRANGE', DEAD, 0, over - 1), DEAD)
  end
end
