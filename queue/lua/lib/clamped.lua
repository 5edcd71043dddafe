-- clamped.lua - numbers that holders say.

-- A number that a holder says of its job: `most` if it is more, 0 if it is below. A verdict that was
-- refused for its delay would be sent again and again.
local function clamped(text, most)
  return math.min(most, digits(string.gsub(text, '^%-%d+$', '0'), math.huge))
end
