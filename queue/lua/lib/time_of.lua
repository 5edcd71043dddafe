-- time_of.lua - scores as times.

-- A score as a time that can be answered; other hands may have written one that is none.
local function time_of(score)
  return math.max(-TIME_MAX, math.min(TIME_MAX, score))
end
