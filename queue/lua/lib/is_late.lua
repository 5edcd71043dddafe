-- is_late.lua - whether a job has expired.

-- Whether the time of an id is over; then it is gone, though it may still wait.
local function is_late(id)
  local by = call('ZSCORE', EXPIRES, id)
  return by and by + 0 <= now
end
