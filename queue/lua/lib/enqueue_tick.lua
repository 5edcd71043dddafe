-- enqueue_tick.lua - the jobs of schedules are accepted.
--- @include "lib/keys.lua"
--- @include "lib/high.lua"
--- @include "lib/put_jobs.lua"

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
  local n = #records / 2
  local m = call('HMGET', META, 'uses', 'high')
  local high, big, heads, dues = tonumber(m[2] or 0), false, {}, {}
  local head = cjson.decode(string.match(records[2], '^[^\n]*'))
  for k = 1, n do
    local due = times[2 * k - 1]
    if due > now and now < high then
      --- @include "lib/later.lua"
      due = later(due)
    end
    heads[k], dues[k] = head, due <= now and stamp or string.format('%d', due)
    big = big or #records[2 * k] > 8192
  end
  put_jobs(m[1], records, heads, dues, 1, n)
  call('HINCRBY', META, 'enqueued', n)
  if big then
    note_used(m[1], 'b')
  end
  if now > high + HIGH_MS then
    call('HSET', META, 'high', stamp)
  end
end
