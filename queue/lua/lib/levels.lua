-- levels.lua - where jobs wait: `schedule` has those of the normal level, and each other level has a set
-- of its own. They exist only while the letter `l` is in `uses`.

-- All of them, the highest level first.
local function levels()
  return { SCHEDULE .. ':h', SCHEDULE, SCHEDULE .. ':l' }
end

-- When the first job of all levels is due; nil: none waits.
local function first_due(uses)
  local first
  for _, set in ipairs(string.find(uses, 'l', 1, true) and levels() or { SCHEDULE }) do
    local score = tonumber(call('ZRANGE', set, 0, 0, 'WITHSCORES')[2])
    first = score and (not first or score < first) and score or first
  end
  return first
end
