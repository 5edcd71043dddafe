-- later.lua - delays, when the clock was set back.

-- The time for a job whose delay begins now. It must not be taken for one that was due before the
-- clock was set back. So those are moved first: 100,000 of them, in about 0.2 s. While there are more
-- yet, it waits until the clock is where it was.
local heeded

local function after_delay(due)
  heeded = heeded or heed_clock(tonumber(call('HGET', META, 'high') or 0), 100)
  local to = heeded + HIGH_MS
  return now < heeded and due > now and due <= to and to + 1 or due
end
