-- prelude_taking.lua - what few claims need: when jobs are due that did not become so together,
-- jobs that dead holders left, locks that are held elsewhere, records that are large or missing.

local MAX_BYTES = 8 * 1024 * 1024 -- of records in a claim

-- Held elsewhere: it waits in its set for the end of that lock.
local function wait_for_lock(set, id, lease)
  local left = call('PTTL', LOCK .. id)
  if left < 0 then
    call('PEXPIRE', LOCK .. id, lease)
    left = lease
  end
  local ends_at = now + left + 1
  call('ZADD', set, ends_at + ends_at % 2, id) -- an odd one would be marked
end

-- To `dead`; `buried` is the list that the claim answers.
local function put_away(buried, set, id, record, reason, text)
  call('ZREM', set, id)
  bury(id, record, reason, text, false)
  buried[#buried + 2], buried[#buried + 1] = text, id
end

-- The names of workers that had not been heard of since the lease that ended was given, the last
-- ones, other than this one and those that a mark names already. One counts as alive for its
-- lease and 15 s.
local gone -- read once
local function gone_workers(worker, mark, ended)
  gone = gone or call('ZREVRANGEBYSCORE', WORKERS, now + 15000, 0, 'WITHSCORES', 'LIMIT', 0, 50)
  local names = {}
  for i = 1, #gone, 2 do
    local id, in_time = gone[i], tonumber(gone[i + 1]) <= ended + 15000
    if #names == 3 then
      break
    elseif in_time and id ~= worker and not string.find(mark, id, 1, true) then
      names[#names + 1] = id
    end
  end
  return #names > 0 and concat(names, ' or ') or 'a worker'
end

-- How many crashes a job has, and what was told of them.
local function crashes_of(id)
  local n, story = string.match(call('HGET', CRASHES, id) or '', '^(%d*)(.*)$')
  return tonumber(n) or 0, story
end

-- One crash more for this id. True: it was the last one, and the job is dead.
local function crash(id, ended, record, worker, poison, buried)
  local n, story = crashes_of(id)
  local who = gone_workers(worker, story, ended)
  story = string.format('%s; %s, lease ended %.0f', story, who, ended)
  if n + 1 < poison then
    call('HSET', CRASHES, id, n + 1 .. story)
    return false
  end
  put_away(buried, RUNNING, id, record, 'poison', 'its holder died ' .. n + 1 .. ' times' .. story)
  return true
end

-- Of the first n ids those that have crashes: {id, how many, ...}; 0 if none has.
local function crashes_of_all(ids, n)
  local found = {}
  for k, mark in ipairs(call('HMGET', CRASHES, unpack(ids, 1, n))) do
    if mark then
      found[#found + 1], found[#found + 2] = ids[k], tonumber(string.match(mark, '^%d+')) or 0
    end
  end
  return #found > 0 and found or 0
end

-- How many of `free` places the limits leave for jobs that are due; so many can start at once.
local function free_places(m, free, slots)
  if m.max_running > 0 or m.rate > 0 then
    free = math.min(free, slots)
  end
  if m.max_running > 0 then
    free = math.min(free, m.max_running - call('ZCARD', RUNNING))
  end
  if m.rate > 0 then
    m.tokens, m.tokens_at = tokens(m), now
    free = math.min(free, floor(m.tokens))
  end
  return free
end

-- How many of the first n ids have records that fit into so many bytes; at least one, if `first`.
local function that_fit(ids, n, room, first)
  for k = 1, n do
    room = room - call('HSTRLEN', JOBS, ids[k])
    if room < 0 and (k > 1 or not first) then
      return k - 1
    end
  end
  return n
end

-- When each of the first n ids is due; they are in order, and the first k of them are due when the
-- first one is. A score costs as much as a command, for Redis prints it with 17 digits: while many
-- have the same, count those.
local function dues_of(ids, n, due, k)
  local dues, runs = {}, 1
  for i = 1, k do
    dues[i] = due
  end
  while k < n and k + n / 8 > 4 * runs do
    due = call('ZSCORE', SCHEDULE, ids[k + 1])
    local to = math.min(n, k + call('ZCOUNT', SCHEDULE, due, due))
    for i = k + 1, to do
      dues[i] = due
    end
    k, runs = to, runs + 1
  end
  for i, score in ipairs(k < n and call('ZMSCORE', SCHEDULE, unpack(ids, k + 1, n)) or {}) do
    dues[k + i] = score
  end
  return dues
end

-- What `last` says of jobs that are due at different times: `=due`, then the ids for which it is.
local function with_dues(ids, dues, n)
  local words = {}
  for k = 1, n do
    words[k] = dues[k] == dues[k - 1] and ids[k] or '=' .. dues[k] .. ' ' .. ids[k]
  end
  return words
end

-- The jobs whose lease is over, as the claim `c` vouches for, go to it, or else where they belong.
-- Returns how many it took, and their bytes.
local function take_over(c)
  local n, bytes, crashed = 0, 0, 0
  local over = call('ZRANGEBYSCORE', RUNNING, '-inf', string.format('%d', math.min(now, c.vouched)),
    'WITHSCORES', 'LIMIT', '0', math.min(c.max, 200))
  open_writes()
  for i = 1, #over, 2 do
    local id, ended = over[i], over[i + 1] + 0
    if bytes > MAX_BYTES then
      break
    end
    local record = call('HGET', JOBS, id)
    if ended % 2 ~= 0 then -- its holder was new to this clock
      call('ZADD', RUNNING, (lease_ends(longest_lease(), c.at_least)), id)
    elseif call('EXISTS', LOCK .. id) == 1 then
      wait_for_lock(RUNNING, id, c.lease)
    elseif not cancelled(id) then
      local dead = not record
      if dead then
        put_away(c.buried, RUNNING, id, '', 'record', 'its record was missing')
      elseif not c.forgive then
        crashed, dead = crashed + 1, crash(id, ended, record, c.worker, c.poison, c.buried)
      end
      if not dead and call('SET', LOCK .. id, c.token, 'NX', 'PXAT', c.lease_end) then
        call('ZADD', RUNNING, c.lease_end, id)
        n, bytes = n + 1, bytes + #record
        c.taken[n], c.dues[n], c.records[n] = id, over[i + 1], record
      end
    end
  end
  count('crashed', crashed)
  return n, bytes
end
