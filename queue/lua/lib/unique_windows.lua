-- unique_windows.lua - windows of unique keys that are over.

-- Forgets windows that are over, at most so many.
local function end_windows(most)
  local over = call('ZRANGEBYSCORE', WINDOWS, '-inf', stamp, 'LIMIT', 0, math.min(most, 3000))
  if #over > 0 then
    call('HDEL', UNIQUE, unpack(over))
    call('ZREM', WINDOWS, unpack(over))
  end
end
