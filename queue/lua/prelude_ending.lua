-- prelude_ending.lua - how jobs end other than by being done.

-- What marks a job beside its record: crashes and requests to cancel.
local function clear_marks(ids)
  if call('EXISTS', CRASHES, CANCELS) > 0 then
    each('HDEL', CRASHES, ids)
    each('HDEL', CANCELS, ids)
  end
end

-- A record is a line of JSON, a newline, the payload. Changes fields of the line; the payload
-- stays as it is. A line that cannot be read, or not be written again (1e999), is replaced.
local function rewrite(record, change)
  local nl = string.find(record, '\n', 1, true) or 0
  local function changed(head)
    change(assert(head.type or head.v) and head)
    return cjson.encode(head)
  end
  local ok, line = pcall(function()
    return changed(cjson.decode(string.sub(record, 1, math.max(nl - 1, 0))))
  end)
  line = ok and line or changed({ v = 1, type = 'unknown', created = now })
  return line .. (nl == 0 and '\n' .. record or string.sub(record, nl))
end

-- To `dead`, out of whatever set it was in (the caller has taken it out of there).
local function bury(id, record, reason, text, counts)
  record = rewrite(record, function(head)
    head.attempts = counts and (head.attempts or 0) + 1 or head.attempts
    head.reason, head.error, head.died = reason, text, now
  end)
  call('HSET', JOBS, id, record)
  call('ZADD', DEAD, stamp, id)
  clear_marks({ id })
end

-- Jobs that the caller has taken out of their set end without being done. `told`: who waits for
-- one of them can read what became of it, for a minute; and of '', that there is such a word.
local function remove(ids, how, told)
  each('HDEL', JOBS, ids)
  clear_marks(ids)
  for i = 0, told and #ids > 0 and #ids or -1 do
    call('SET', P .. 'ended:' .. (ids[i] or ''), stamp .. ' ' .. how, 'PX', '60000')
  end
  count(how, #ids)
end

-- Marks one that runs: this run is to be cancelled. A lock that has ended names no run, and does not
-- tell that its holder is gone, for this clock may have been set forward: then the mark is `*`, any.
-- Returns its token ('': none) and the end of its lease; nil: it does not run.
local function ask_to_cancel(id)
  local ends = call('ZSCORE', RUNNING, id)
  local token = ends and (call('GET', LOCK .. id) or '')
  if token then
    call('HSET', CANCELS, id, token == '' and '*' or string.match(token, '(%d*)$'))
  end
  return token, floor(tonumber(ends or 0))
end

local cancelling = call('EXISTS', CANCELS) == 1

-- True: somebody asked to cancel this run, and that is what ends it, whatever else was to become
-- of it. fence nil: the run whose lease is over.
local function cancelled(id, fence)
  local asked = cancelling and call('HGET', CANCELS, id)
  if not asked then
    return false
  end
  call('HDEL', CANCELS, id)
  if fence and fence ~= asked and asked ~= '*' then
    return false
  end
  call('ZREM', RUNNING, id)
  call('DEL', LOCK .. id)
  remove({ id }, 'cancelled', true)
  return true
end

-- Bounds `dead` by count and age, after so many jobs were brought; their records go with them. It
-- takes out as many as were brought, so that the bound holds after each script, and some more, so
-- that it is reached soon where it was lowered.
local function trim_dead(max, age, brought)
  for pass = 1, 2 do
    local old
    if pass == 1 then
      old = call('ZRANGEBYSCORE', DEAD, '-inf', now - math.min(DELAY_MAX, age), 'LIMIT', 0, 100)
    else
      local over = math.min(call('ZCARD', DEAD) - max, brought + 100)
      old = over > 0 and call('ZRANGE', DEAD, 0, over - 1) or {}
    end
    each('ZREM', DEAD, old)
    each('HDEL', JOBS, old)
    clear_marks(old)
  end
end
