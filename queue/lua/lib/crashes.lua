-- crashes.lua - which jobs have crashes.
--- @include "lib/keys.lua"
--- @include "lib/key_crashes.lua"

-- Of the first n ids those that have crashes: {id, how many, ...}; 0 if none has.
local function crashes_of_all(ids, n)
  local found = {}
  for k, mark in ipairs(call('HMGET', CRASHES, unpack(ids, 1, n))) do
    if mark then
      found[#found + 1], found[#found + 2] = ids[k], tonumber(string.match(mark, '^%d+')) or 0
    end
  end
  return #found > 0 and found or 0
end
