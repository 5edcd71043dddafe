-- keeping.lua - done jobs that are kept for a while.

-- `done` has the time at which each ended, `kept` the time until which it is kept, `results` a line
-- about it and its result. The field '' of `results` counts the bytes of all others: so it ends with
-- them. All three end after the last job, also where no script comes any more.

-- This many in a script, which takes 1 ms, beside as many as it keeps: what is beyond the bounds becomes less
-- with each script that keeps some.
local FORGET_MAX = 500

-- The keys end so long for each job after the last one is over: the checks of one worker need half of it for
-- one queue. Redis deletes a key with all that is left at once, a million jobs in a second, and answers no
-- request meanwhile.
local FORGET_MS = 20

-- Forgets these ids, at most 3,000; all of them are kept.
local function forget(ids)
  local bytes = 0
  for k = 1, #ids do
    bytes = bytes + call('HSTRLEN', RESULTS, ids[k])
  end
  if #ids > 0 then
    call('ZREM', DONE, unpack(ids))
    call('ZREM', KEPT, unpack(ids))
    call('HDEL', RESULTS, unpack(ids))
    call('HINCRBY', RESULTS, '', -bytes)
    if call('EXISTS', DONE) == 0 then
      call('DEL', RESULTS)
      note_use(KEEPING, false)
    end
  end
  return #ids
end

-- Forgets those of these ids, at most 3,000, that are kept. Returns how many.
local function forget_kept(ids)
  local kept = {}
  for k, ended in ipairs(#ids > 0 and call('ZMSCORE', DONE, unpack(ids)) or {}) do
    if ended then
      kept[#kept + 1] = ids[k]
    end
  end
  return forget(kept)
end

-- Forgets those whose time is over, at most this many. Returns how many.
local function forget_over(most)
  return forget(call('ZRANGEBYSCORE', KEPT, '-inf', stamp, 'LIMIT', 0, most))
end

-- until_ms and words of each of these ids, at most 1,000.
local function keep_done(ids, until_ms, words)
  local ends, untils, lines, bytes = {}, {}, {}, 0
  forget_kept(ids)
  for k = 1, #ids do
    local i = 2 * k - 1
    ends[i], ends[i + 1] = stamp, ids[k]
    untils[i], untils[i + 1] = string.format('%d', until_ms[k]), ids[k]
    lines[i], lines[i + 1] = ids[k], words[k]
    bytes = bytes + #words[k]
  end
  call('ZADD', DONE, unpack(ends))
  call('ZADD', KEPT, unpack(untils))
  call('HSET', RESULTS, unpack(lines))
  call('HINCRBY', RESULTS, '', bytes)
  note_use(KEEPING, true)
end

-- Forgets those whose time is over, and then the oldest beyond the bounds, after this many were added.
local function trim_kept(max, max_bytes, added)
  local left = added + FORGET_MAX
  left = left - forget_over(left)
  local over = math.min(call('ZCARD', DONE) - max, left)
  if over > 0 then
    left = left - forget(call('ZRANGE', DONE, 0, over - 1))
  end
  over = tonumber(call('HGET', RESULTS, '') or 0) - max_bytes
  if over > 0 and left > 0 then
    local oldest, n = call('ZRANGE', DONE, 0, left - 1), 0
    while over > 0 and n < #oldest do
      n = n + 1
      over = over - call('HSTRLEN', RESULTS, oldest[n])
    end
    forget({ unpack(oldest, 1, n) })
  end
  local latest = call('ZRANGE', KEPT, -1, -1, 'WITHSCORES')[2]
  for _, key in ipairs(latest and { DONE, KEPT, RESULTS } or {}) do
    call('PEXPIREAT', key, string.format('%d', latest + FORGET_MS * call('ZCARD', DONE)))
  end
end
