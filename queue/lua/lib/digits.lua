-- digits.lua - arguments that are numbers.

-- An argument that is a number: digits, at most `most`. Anything else (nan, inf, 1e30, 0x10, 0.5) is
-- refused; so a script reads its numbers before it writes anything.
local function digits(text, most)
  local value = string.find(text, '^%d+$') and tonumber(text)
  if not value or value > most then
    error(string.format('holdfast: expected a number from 0 to %.0f, found %s', most,
      string.gsub(string.sub(text, 1, 32), '%c', '?')), 0)
  end
  return value
end
