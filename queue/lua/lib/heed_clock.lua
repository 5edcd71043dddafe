-- heed_clock.lua - jobs that were ready before the clock was set back stay ready.
--- @include "lib/keys.lua"
--- @include "lib/high.lua"
--- @include "lib/open_writes.lua"

local function heed_clock(high, slices)
  if now >= high and now <= high + HIGH_MS then
    return high
  end
  local to = high + HIGH_MS
  open_writes()
  for _ = 1, slices or 1 do
    local jobs = now < high and call('ZRANGEBYSCORE', SCHEDULE, '(' .. stamp,
      string.format('%d', to), 'WITHSCORES', 'LIMIT', 0, STEP_BACK_JOBS) or {}
    for i = 1, #jobs, 2 do
      call('ZADD', SCHEDULE, 'XX', string.format('%d', jobs[i + 1] - (to - now)), jobs[i])
    end
    if #jobs < 2 * STEP_BACK_JOBS then
      call('HSET', META, 'high', stamp)
      return now
    end
  end
  return high -- there may be more
end
