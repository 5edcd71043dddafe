-- take_over.lua - what a claim takes from dead holders (lib/claiming.lua explains `c`).

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

-- The jobs whose lease was found to be over go to the claim, or else where they belong.
local function take_over(c, poison)
  local n, crashed = 0, 0
  open_writes()
  for _, id in ipairs(call('ZRANGEBYSCORE', RUNNING, '0', '0', 'LIMIT', '0', math.min(c.max, 200))) do
    if c.bytes > MAX_BYTES then
      break
    end
    local record = call('HGET', JOBS, id)
    if call('EXISTS', LOCK .. id) == 1 then
      wait_for_lock(RUNNING, id, c.lease)
    elseif not cancelled(id) then
      local dead = not record
      if dead then
        put_away(c.buried, RUNNING, id, '', 'record', 'its record was missing')
      elseif poison > 0 then
        crashed, dead = crashed + 1, crash(id, record, c.worker, poison, c.buried)
      else
        note_run(id)
      end
      if not dead and has(c.uses, EXPIRY) and string.find(record, '^[^\n]*"start_by":') then
        record = rewrite(record, function(head)
          head.start_by = nil -- it may have started
        end)
        call('HSET', JOBS, id, record)
      end
      if not dead and call('SET', LOCK .. id, c.token, 'NX', 'PXAT', c.lease_end) then
        run_over(id)
        call('ZADD', RUNNING, c.lease_end, id)
        n, c.bytes = n + 1, c.bytes + #record
        c.ids[n], c.dues[n], c.records[n] = id, stamp, record
      end
    end
  end
  count('crashed', crashed)
  c.n, c.over = n, n
end

-- The number of crashes of a job, and their text.
local function crashes_of(id)
  local n, story = string.match(call('HGET', CRASHES, id) or '', '^(%d*)(.*)$')
  return tonumber(n) or 0, story
end

-- Whether its checkpoint is another one than at its last crash, whose digest it has.
local function advanced(id)
  local head, digest, bytes = string.match(call('HGET', CHECKPOINTS, id) or '', '^(%d+ %d+) (%S+) (.*)$')
  local present = bytes and redis.sha1hex(bytes)
  if not bytes or present == digest then
    return false
  end
  call('HSET', CHECKPOINTS, id, concat({ head, present, bytes }, ' '))
  return true
end

-- One crash more for this id. `who` tells who died and how, with the text of earlier ones. nil: it is counted; else
-- it was the last one: how many times, who and when. A job that makes progress is not poison: its crash counts as
-- the first.
local function count_crash(id, poison, who)
  local n, story = crashes_of(id)
  if advanced(id) then
    n, story = 0, ''
  end
  n, story = n + 1, concat({ story, '; ', who(story), ' ', date_of(now) })
  if n >= poison then
    return n .. ' times' .. story
  end
  call('HSET', CRASHES, id, n .. story)
  note_use(MARKS, true)
end

-- A crash that does not count is remembered as well: if this claim gives the job back, the next one has to know that
-- something of the run may be left.
local function note_run(id)
  if not call('HGET', CRASHES, id) then
    call('HSET', CRASHES, id, '0')
    note_use(MARKS, true)
  end
end

-- Those of the first n ids that have run; the first `over` of the ids were taken over: {id, how many crashes,
-- checkpoint, ...}; 0 if none has.
local function crashes_of_all(ids, n, over)
  local found, checkpoints = {}, call('HMGET', CHECKPOINTS, unpack(ids, 1, n))
  for k, mark in ipairs(call('HMGET', CRASHES, unpack(ids, 1, n))) do
    if mark or checkpoints[k] or k <= over then
      local i = #found
      found[i + 1], found[i + 2] = ids[k], tonumber(string.match(mark or '0', '^%d+')) or 0
      found[i + 3] = string.match(checkpoints[k] or '', '^%d+ %d+ %S+ (.*)$') or ''
    end
  end
  return #found > 0 and found or 0
end
