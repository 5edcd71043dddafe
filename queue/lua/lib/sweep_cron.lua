-- sweep_cron.lua - schedules that need care now and then, at each check of a worker.

-- A schedule of a file ends 10 minutes after the last live worker named it. If the end came while no
-- worker was there to see it (more than a minute ago), or this clock was set, it has 10 minutes more:
-- the worker that names it may be about to start.
local function sweep_named()
  local ended = call('ZRANGEBYSCORE', CRON_NAMED, '-inf', stamp, 'WITHSCORES', 'LIMIT', 0, 20)
  for i = 1, #ended, 2 do
    if ended[i + 1] + 0 < now - 60000 then
      call('ZADD', CRON_NAMED, 'XX', string.format('%d', now + 600000), ended[i])
    else
      call('ZREM', CRON_NAMED, ended[i])
      call('ZREM', CRON_NEXT, ended[i])
      call('HDEL', CRON, ended[i])
      call('HDEL', CRON_STATE, ended[i])
    end
  end
  if #ended > 0 then
    note_use('c', call('EXISTS', CRON, CRON_NAMED) > 0)
  end
end

-- After a step back of this clock all next ticks are reckoned anew: they are due now, and the worker sees that
-- their last ticks are in the future (cron/ticks.c).
local function sweep_future()
  local high = tonumber(call('HGET', META, 'cron_high') or 0)
  if now >= high then
    return
  end
  local ids = call('ZRANGEBYSCORE', CRON_NEXT, '(' .. stamp, '+inf', 'LIMIT', 0, 1000)
  for _, id in ipairs(ids) do
    call('ZADD', CRON_NEXT, 'XX', stamp, id)
  end
  if #ids < 1000 then
    call('HSET', META, 'cron_high', stamp)
  end
end

local function sweep_cron()
  open_writes()
  sweep_named()
  sweep_future()
end
