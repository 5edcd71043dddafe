-- enqueue_tick.lua - the jobs of schedules are accepted.

-- The record of a job of a schedule: what its definition says of the job, and the tick (nil: none).
local function record_of(value, id, tick)
  local nl = string.find(value, '\n', 1, true)
  local head = cjson.decode(string.sub(value, 1, nl - 1)).job
  head.cron, head.scheduled = id, tick
  return cjson.encode(head) .. string.sub(value, nl)
end

-- Accepts jobs of one schedule: id, record, ...; times: due, id, ... with dues that may have come. They
-- have the same options.
local function accept(records, times)
  local m = call('HMGET', META, 'uses', 'high')
  local uses, high, big = m[1], tonumber(m[2] or 0), false
  local options, heads, homes = cjson.decode(string.match(records[2], '^[^\n]*')), {}, nil
  local first, upto, expiring = 1, #records / 2, options.start_within
  if options.priority then
    homes = { [options] = level_of(options.priority) }
  end
  for k = 1, upto do
    local due = times[2 * k - 1]
    if due > now and now < high then
      due = after_delay(due)
    end
    heads[k], times[2 * k - 1] = options, due <= now and stamp or string.format('%d', due)
    big = big or #records[2 * k] > 8192
  end
  --- @step "steps/put_jobs.lua"
  call('HINCRBY', META, 'enqueued', upto)
  if big and not (uses and string.find(uses, 'b', 1, true)) then
    note_use('b', true)
  end
  if now > high + HIGH_MS then
    call('HSET', META, 'high', stamp)
  end
end
