-- taking.lua - how a claim takes due jobs (lib/claiming.lua explains `c`).

-- Takes due jobs of the usual level, in order; again, if locks were held elsewhere.
local function take_in_order(c)
  for _ = 1, 10 do
    local want = c.free - (c.n - c.over)
    if want <= 0 or c.bytes > MAX_BYTES or c.more == false or not take_from(c, SCHEDULE, want) then
      break
    end
  end
end

-- The same of all levels, as by_level() divides the places.
local function take_by_level(c)
  local plan, beyond = {}, nil
  for _ = 1, 10 do
    local want = c.free - (c.n - c.over)
    if want <= 0 or c.bytes > MAX_BYTES or c.more == false then
      break
    elseif #plan == 0 then
      plan, beyond, c.turn = by_level(want, c.turn or (call('HGET', META, 'turn') or 0) + 0)
    end
    local set, k = unpack(table.remove(plan, 1) or { SCHEDULE, 0 })
    local some = take_from(c, set, k)
    c.more = c.more or beyond or #plan > 0
    if not some then
      break
    end
  end
end

-- Takes the first due jobs of a set, at most this many. False: there are none.
local function take_from(c, set, want)
  local ids = call('ZRANGEBYSCORE', set, '-inf', stamp, 'LIMIT', '0', want + 1)
  local k = math.min(#ids, want)
  c.more = #ids > want
  if has(c.uses, LARGE) then -- no more than there is room for
    local fit = that_fit(ids, k, MAX_BYTES - c.bytes, c.n == 0)
    if fit < k then
      k, c.more, c.bytes = fit, true, MAX_BYTES + 1 -- no further round
    end
  end
  if k == 0 then
    return false
  end
  local found = call('HMGET', JOBS, unpack(ids, 1, k))
  local at, each = take_out(set, ids, k)
  local odd = lock_each(c, set, ids, found, k)
  add_taken(c, ids, found, k, at, each, odd)
  return true
end

-- Takes the first k of a set out of it. Returns when they all were due, or also when each was.
local function take_out(set, ids, k)
  if k == 1 then
    return call('ZPOPMIN', set)[2]
  end
  local at, each = call('ZSCORE', set, ids[1]), nil -- mostly that of them all
  local together = call('ZCOUNT', set, at, at)
  if together < k then
    each = dues_of(set, ids, k, at, together)
  end
  call('ZREMRANGEBYRANK', set, '0', k - 1)
  return at, each
end

-- Locks the first k. Returns the places of those that are locked elsewhere, or have no record; nil: there is none.
local function lock_each(c, set, ids, found, k)
  local token, lease_end, bytes, odd = c.token, c.lease_end, c.bytes, nil
  for i = 1, k do
    local record = found[i]
    if record and call('SET', LOCK .. ids[i], token, 'NX', 'PXAT', lease_end) then
      bytes = bytes + #record
    else
      odd, c.odd = odd or {}, c.odd or {}
      odd[i], c.odd[#c.odd + 1] = true, { ids[i], record and set }
    end
  end
  c.bytes = bytes
  return odd
end

-- Adds the first k, but for the odd ones, to those that are taken, and to `running`.
local function add_taken(c, ids, found, k, at, each, odd)
  local before, n = c.n, c.n
  if n == 0 and not odd then
    c.ids, c.records, c.dues, c.due, n = ids, found, each, at, k
  else -- to those that are there already, or with gaps
    c.dues = c.dues or {}
    for i = 1, n do
      c.dues[i] = c.dues[i] or c.due
    end
    for i = 1, k do
      if not (odd and odd[i]) then
        n = n + 1
        c.ids[n], c.records[n], c.dues[n] = ids[i], found[i], each and each[i] or at
      end
    end
  end
  c.n = n
  if n == 1 and before == 0 then
    call('ZADD', RUNNING, c.lease_end, c.ids[1])
  elseif n > before then -- the last one first: among equal scores a place is looked for from there
    local running, lease_end = {}, c.lease_end
    ids = c.ids
    for i = n, before + 1, -1 do
      local j = 2 * (n - i) + 1
      running[j], running[j + 1] = lease_end, ids[i]
    end
    call('ZADD', RUNNING, unpack(running))
  end
end

-- Held elsewhere: it waits in its set for the end of that lock.
local function wait_for_lock(set, id, lease)
  local left = call('PTTL', LOCK .. id)
  if left < 0 then
    call('PEXPIRE', LOCK .. id, lease)
    left = lease
  end
  call('ZADD', set, now + left + 1, id)
end

-- The due time of each of the first n ids of a set; they are in order, and the first k of them are due
-- at the same time. Reading a score costs as much as a command, because Redis prints it with 17 digits:
-- if many have the same, they are counted.
local function dues_of(set, ids, n, due, k)
  local dues, runs = {}, 1
  for i = 1, k do
    dues[i] = due
  end
  while k < n and k + n / 8 > 4 * runs do
    due = call('ZSCORE', set, ids[k + 1])
    local to = math.min(n, k + call('ZCOUNT', set, due, due))
    for i = k + 1, to do
      dues[i] = due
    end
    k, runs = to, runs + 1
  end
  for i, score in ipairs(k < n and call('ZMSCORE', set, unpack(ids, k + 1, n)) or {}) do
    dues[k + i] = score
  end
  return dues
end

-- How many of the first n ids have records that fit into this many bytes; at least one, if `first`.
local function that_fit(ids, n, room, first)
  for k = 1, n do
    room = room - call('HSTRLEN', JOBS, ids[k])
    if room < 0 and (k > 1 or not first) then
      return k - 1
    end
  end
  return n
end
