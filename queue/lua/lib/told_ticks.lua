-- told_ticks.lua - what a claim tells of due ticks, once.

-- nil: none is due, or another worker was told.
local function told_ticks(worker)
  return take_ticks() and due_ticks({}, 100, worker) or nil
end
