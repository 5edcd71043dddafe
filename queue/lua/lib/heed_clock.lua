-- heed_clock.lua - jobs that were ready before the clock was set back stay ready.

local function heed_clock(high, slices)
  if now >= high and now <= high + HIGH_MS then
    return high
  end
  local to = high + HIGH_MS
  open_writes()
  for _ = 1, slices or 1 do
    local moved = 0
    for _, set in ipairs(now < high and levels() or {}) do
      local jobs = call('ZRANGEBYSCORE', set, '(' .. stamp, string.format('%d', to), 'WITHSCORES',
        'LIMIT', 0, STEP_BACK_JOBS - moved)
      for i = 1, #jobs, 2 do
        call('ZADD', set, 'XX', string.format('%d', jobs[i + 1] - (to - now)), jobs[i])
      end
      moved = moved + #jobs / 2
    end
    if moved < STEP_BACK_JOBS then
      call('HSET', META, 'high', stamp)
      return now
    end
  end
  return high -- there may be more
end
