-- clock.lua - a clock of Redis that was set back.

-- Jobs that were ready before the clock was set back stay ready.
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

-- The time for a job whose delay begins now. It must not be taken for one that was due before the
-- clock was set back. So those are moved first: 100,000 of them, in about 0.2 s. While there are more
-- yet, it waits until the clock is where it was.
local heeded

local function after_delay(due)
  heeded = heeded or heed_clock(tonumber(call('HGET', META, 'high') or 0), 100)
  local to = heeded + HIGH_MS
  return now < heeded and due > now and due <= to and to + 1 or due
end
