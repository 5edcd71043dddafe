-- expiry.lua - when a waiting job expires. While a job waits for its first start, `start_by` in its
-- record is that time, and the score of its id in EXPIRES. A job that has started never expires.

-- The time for a job with this `start_within` in its record, first due then; nil: it never expires.
local function start_by(within, due)
  within = tonumber(within)
  return within and string.format('%d', math.min(TIME_MAX, math.max(due + 0, now) + within))
end
