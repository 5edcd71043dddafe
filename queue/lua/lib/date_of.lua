-- date_of.lua - times for people.

-- A time in Unix ms as `2030-01-31T08:00:00.000Z`. Its years begin in March, so a leap day is the last of one.
local function date_of(ms)
  local days = floor(ms / 86400000) + 719468 -- since 0000-03-01
  local era = floor(days / 146097)
  local day = days - era * 146097
  local year = floor((day - floor(day / 1460) + floor(day / 36524) - floor(day / 146096)) / 365)
  day = day - (365 * year + floor(year / 4) - floor(year / 100))
  local month = floor((5 * day + 2) / 153)
  day = day - floor((153 * month + 2) / 5) + 1
  month = month < 10 and month + 3 or month - 9
  year = year + era * 400 + (month <= 2 and 1 or 0)
  local s = floor(ms / 1000) % 86400
  return string.format('%04d-%02d-%02dT%02d:%02d:%02d.%03dZ', year, month, day, floor(s / 3600),
    floor(s / 60) % 60, s % 60, ms % 1000)
end
