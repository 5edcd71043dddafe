-- take_ticks.lua - a worker is told that ticks are due.

-- Whether a tick is due that no other worker has taken. Then this one has a second to reckon what
-- comes of it (cron_due, cron_tick). If it dies, another one comes.
local function take_ticks()
  local at = next_tick()
  if not at or at > now then
    return false
  end
  open_writes()
  call('HSET', META, 'cron_by', string.format('%d', now + 1000))
  return true
end
