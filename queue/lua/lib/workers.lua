-- workers.lua - the live workers, and their leases.

-- The list of lengths was lost: what is left of the longest lease that runs stands for it, until its worker checks.
-- Without it a reading would be past leases that may run for longer.
local function recall_lease()
  local last = call('ZRANGE', RUNNING, -1, -1, 'WITHSCORES')[2]
  local left = last and last - math.max(now, (call('HGET', META, 'clock') or 0) + 0) or 0
  if left >= 1 and left <= DELAY_MAX then
    call('ZADD', LEASES, now, string.format('%.0f', left))
  end
end

-- The queue's lists of workers, and of the lengths of their leases: alive until. Those that went
-- within the hour stay: a crash names the workers that are gone, and their leases may still count.
-- No step of this clock may forget a length. That list has no end, and where no worker of it is alive
-- any more, which may be the doing of a step, its hours begin now.
local function refresh_worker(worker, alive, lease)
  alive = math.max(0, math.min(DELAY_MAX, alive))
  open_writes()
  local latest = call('ZRANGE', LEASES, -1, -1, 'WITHSCORES')[2]
  if not latest then
    recall_lease()
  elseif latest + 0 < now then
    for _, length in ipairs(call('ZRANGE', LEASES, 0, -1)) do
      call('ZINCRBY', LEASES, string.format('%d', now - latest), length)
    end
  end
  for _, list in ipairs({ WORKERS, LEASES }) do
    call('ZADD', list, now + alive, list == WORKERS and worker or lease)
    call('ZREMRANGEBYSCORE', list, '-inf', now - 3600000)
  end
  call('PEXPIRE', WORKERS, 7200000 + alive)
  call('ZREMRANGEBYRANK', LEASES, 0, -257) -- more lengths than 256 are a mistake
end

-- The shortest lease that a job of a queue may have, ms.
local function shortest_lease()
  local shortest = math.huge
  for _, lease in ipairs(call('ZRANGE', LEASES, 0, -1)) do
    shortest = math.min(shortest, lease + 0)
  end
  return shortest
end

-- What the live workers of the queue have said of themselves (present).
local all_said

-- A text of each; false: it has not said anything yet.
local function live_said()
  if all_said then
    return all_said
  end
  all_said = {}
  local alive
  repeat
    alive = call('ZREVRANGEBYSCORE', WORKERS, '+inf', stamp, 'LIMIT', #all_said, 1000)
    for _, text in ipairs(#alive > 0 and call('HMGET', HANDLES, unpack(alive)) or {}) do
      all_said[#all_said + 1] = text
    end
  until #alive < 1000
  return all_said
end

-- What a worker has said names this type: a handler of its own, or one for all types.
local function handles(said, type)
  return string.find(said, ' ' .. tostring(type) .. ' ', 1, true) or string.find(said, ' * ', 1, true)
end

local handled_types = {} -- by type

-- Whether a live worker handles the type.
local function has_handler(type)
  type = tostring(type)
  local lists = handled_types[type] == nil and live_said() or {}
  for k = 1, #lists do
    if lists[k] and handles(lists[k], type) then
      handled_types[type] = true
      break
    end
  end
  handled_types[type] = handled_types[type] or false
  return handled_types[type]
end
