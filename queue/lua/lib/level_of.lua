-- level_of.lua - where a job waits.
local LEVEL_SETS = { high = ':h', low = ':l' } -- behind the name of SCHEDULE

-- The set of the jobs with this `priority` in their record; any other value is normal.
local function level_of(priority)
  return SCHEDULE .. (priority and LEVEL_SETS[priority] or '')
end
