-- home_of.lua - where a job belongs that waits again.
--- @include "lib/levels.lua"
--- @include "lib/head_of.lua"

-- The set for this job; `uses` of meta tells whether it could be another than SCHEDULE.
local function home_of(id, uses)
  if not (uses and string.find(uses, 'l', 1, true)) then
    return SCHEDULE
  end
  local head = head_of(call('HGET', JOBS, id) or '')
  return level_of(head and head.priority)
end
