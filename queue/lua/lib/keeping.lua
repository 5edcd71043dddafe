-- keeping.lua - done jobs that are kept for a while.
--
-- `done` has the time at which each ended, `kept` the time until which it is kept, `results` a line
-- about it and its result. The field '' of `results` counts the bytes of all others: so it ends with
-- them. All three end after the last job, also where no script comes any more.

-- So many in a script, which takes 1 ms, beside as many as it keeps: what is beyond the bounds becomes less
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
      note_use('k', false)
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

-- Forgets those whose time is over, at most so many. Returns how many.
local function forget_over(most)
  return forget(call('ZRANGEBYSCORE', KEPT, '-inf', stamp, 'LIMIT', 0, most))
end
