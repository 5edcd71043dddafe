-- take_over.lua - jobs that dead holders left.

-- The names of workers that have not been heard of for a lease, the last ones, other than this one and those that a
-- mark names already. One counts as alive for its lease and 15 s.
local silent_workers -- read once

local function gone_workers(worker, mark)
  silent_workers = silent_workers or call('ZREVRANGEBYSCORE', WORKERS, now + 15000, 0, 'WITHSCORES', 'LIMIT', 0, 50)
  local names = {}
  for i = 1, #silent_workers, 2 do
    local id = silent_workers[i]
    if #names == 3 then
      break
    elseif id ~= worker and not string.find(mark, id, 1, true) then
      names[#names + 1] = id
    end
  end
  return #names > 0 and concat(names, ' or ') or 'a worker'
end

-- Whether its holder's death was the last crash, and the job is dead.
local function crash(id, record, worker, poison, buried)
  local fatal = count_crash(id, poison, function(story)
    return gone_workers(worker, story) .. ', lease ended'
  end)
  if fatal then
    put_away(buried, RUNNING, id, record, 'poison', 'its holder died ' .. fatal)
  end
  return fatal ~= nil
end

-- The jobs whose lease was found to be over go to the claim `c`, or else where they belong. Returns how many it
-- took, and their bytes.
local function take_over(c)
  local n, bytes, crashed = 0, 0, 0
  local over = call('ZRANGEBYSCORE', RUNNING, '0', '0', 'LIMIT', '0', math.min(c.max, 200))
  open_writes()
  for _, id in ipairs(over) do
    if bytes > MAX_BYTES then
      break
    end
    local record = call('HGET', JOBS, id)
    if call('EXISTS', LOCK .. id) == 1 then
      wait_for_lock(RUNNING, id, c.lease)
    elseif not cancelled(id) then
      local dead = not record
      if dead then
        put_away(c.buried, RUNNING, id, '', 'record', 'its record was missing')
      elseif not c.forgive then
        crashed, dead = crashed + 1, crash(id, record, c.worker, c.poison, c.buried)
      end
      if not dead and c.expires and string.find(record, '^[^\n]*"start_by":') then
        record = rewrite(record, function(head)
          head.start_by = nil -- it may have started
        end)
        call('HSET', JOBS, id, record)
      end
      if not dead and call('SET', LOCK .. id, c.token, 'NX', 'PXAT', c.lease_end) then
        run_over(id)
        call('ZADD', RUNNING, c.lease_end, id)
        n, bytes = n + 1, bytes + #record
        c.taken[n], c.dues[n], c.records[n] = id, stamp, record
      end
    end
  end
  count('crashed', crashed)
  return n, bytes
end
