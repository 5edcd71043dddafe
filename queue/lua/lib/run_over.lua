-- run_over.lua - a run is over, and its job goes back: its progress was that of the run.

local told_progress = call('EXISTS', PROGRESS) == 1

local function run_over(id)
  if told_progress then
    call('HDEL', PROGRESS, id)
  end
end
