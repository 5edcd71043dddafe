-- next_tick.lua - when a worker should look at the schedules.

-- The time of the next tick; of one that is due and that a worker has taken, the time at which
-- another worker should come for it. nil: there is none.
local function next_tick()
  local head = tonumber(call('ZRANGE', P .. 'cron_next', 0, 0, 'WITHSCORES')[2] or false)
  if not head or head > now then
    return head
  end
  local by = tonumber(call('HGET', META, 'cron_by') or 0)
  return by <= now + 1000 and math.max(head, by) or head -- later only if this clock was set back
end
