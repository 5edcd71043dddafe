-- enqueue_tick.lua - the jobs of schedules are accepted.
--- @include "lib/keys.lua"
--- @include "lib/high.lua"

-- The record of a job of a schedule: what its definition says of the job, and the tick (nil: none).
local function record_of(value, id, tick)
  local nl = string.find(value, '\n', 1, true)
  local head = cjson.decode(string.sub(value, 1, nl - 1)).job
  head.cron, head.scheduled = id, tick
  return cjson.encode(head) .. string.sub(value, nl)
end

-- Accepts jobs: id, record, ...; times: due, id, ... with dues that may have come.
local function accept(records, times)
  local n = #records / 2
  local m = call('HMGET', META, 'uses', 'high')
  local high, big = tonumber(m[2] or 0), false
  call('HSET', JOBS, unpack(records))
  for j = 1, 2 * n, 2 do
    local due = times[j]
    if due > now and now < high then
      --- @include "lib/later.lua"
      due = later(due)
    end
    times[j] = due <= now and stamp or string.format('%d', due)
    big = big or #records[j + 1] > 8192
  end
  call('ZADD', SCHEDULE, unpack(times))
  call('HINCRBY', META, 'enqueued', n)
  if big then
    --- @include "lib/uses.lua"
    note_use('b', true)
  end
  if now > high + HIGH_MS then
    call('HSET', META, 'high', stamp)
  end
end
