-- is_held.lua - whether a schedule of a file makes no jobs, because no live worker names it.

local asker_said

-- A worker that has not said yet what its file names may name it.
local function may_name(said, id)
  return not said or string.find(said, ' @' .. id .. ' ', 1, true) ~= nil
end

-- asker: a worker, which is alive whatever this clock says; nil: none. Without any live worker all is as it
-- was: the one that names it may be about to start.
local function is_held(id, asker)
  if not call('ZSCORE', CRON_NAMED, id) then
    return false -- a command's
  end
  if asker and asker_said == nil then
    asker_said = call('HGET', HANDLES, asker)
  end
  if asker and may_name(asker_said, id) then
    return false
  end
  local all = live_said()
  for k = 1, #all do
    if may_name(all[k], id) then
      return false
    end
  end
  return asker ~= nil or #all > 0
end
