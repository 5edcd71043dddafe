-- found_in.lua - the state of a job.

-- `schedule` (of whatever level), `running`, `dead` or `parked`, and its score; nil: there is no such job.
-- And the set in which it waits. `expired`: it waits or is parked, but its time is over.
local function found_in(id)
  local set, score = waits_in(id)
  if set then
    return is_late(id) and 'expired' or 'schedule', score, set
  end
  for _, name in ipairs({ 'running', 'dead', 'parked' }) do
    score = call('ZSCORE', P .. name, id)
    if score then
      return name == 'parked' and is_late(id) and 'expired' or name, score
    end
  end
end
