-- prelude.lua - put in front of every script of a queue by the build.
--
-- KEYS[1] is the queue's prefix, `hf:{name}:`; all keys of the queue begin with it and share its
-- hash tag. A script reads and refuses first and writes last, because scripts do not roll back.
-- Every script answers {status, now, ...}: status is a number of error.h, 0 or below; now is
-- TIME in ms. Under `maxmemory` all but enqueue begin their writing with open_writes().
local call, concat, floor = redis.call, table.concat, math.floor
local OK, EXISTS, LOST, GONE, LATE, CANCEL, RUNS, IS_DEAD = 0, -1, -2, -3, -4, -5, -6, -7
local BROKEN_MS = 100 -- a promise that is further past has been broken
local BIG_BYTES = 8192 -- a claim need not weigh records up to this size
local SLICE = 3000 -- arguments in one call; Lua's unpack ends near 8000

local P, SCHEDULE, RUNNING, DEAD, JOBS, LOCK, META, WAKE, CRASHES, CANCELS, WORKERS
local function use(prefix)
  P = prefix
  SCHEDULE, RUNNING, DEAD = P .. 'schedule', P .. 'running', P .. 'dead'
  JOBS, LOCK, META, WAKE = P .. 'jobs', P .. 'lock:', P .. 'meta', P .. 'wake'
  CRASHES, CANCELS, WORKERS = P .. 'crashes', P .. 'cancel', P .. 'workers'
end
use(KEYS[1])

local time = call('TIME')
local now = time[1] * 1000 + floor(time[2] / 1000)

local function late(not_after)
  not_after = tonumber(not_after)
  return not_after > 0 and now > not_after
end

-- A full Redis accepts this, and then whatever else the script writes.
local function open_writes()
  call('ZREM', WAKE, '')
end

-- One command for a list of any length.
local function each(command, key, list)
  for i = 1, #list, SLICE do
    call(command, key, unpack(list, i, math.min(i + SLICE - 1, #list)))
  end
end

-- What marks a job beside its record: crashes and requests to cancel.
local function clear_marks(ids)
  for _, marks in ipairs({ CRASHES, CANCELS }) do
    if call('EXISTS', marks) == 1 then
      each('HDEL', marks, ids)
    end
  end
end

-- A record is a line of JSON, a newline, the payload. Changes fields of the line; the payload
-- stays as it is. A line that cannot be read, or not be written again (1e999), is replaced.
local function rewrite(record, change)
  local nl = string.find(record, '\n', 1, true) or 0
  local function changed(head)
    change(assert(head.v) and head)
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
  call('ZADD', DEAD, now, id)
  clear_marks({ id })
end

local function count(field, by)
  if by > 0 then
    call('HINCRBY', META, field, by)
  end
end

-- Jobs that the caller has taken out of their set end without being done. `told`: who waits for
-- one of them can read what became of it, for a minute; and of '', that there is such a word.
local function remove(ids, how, told)
  each('HDEL', JOBS, ids)
  clear_marks(ids)
  for i = 0, told and #ids or -1 do
    call('SET', P .. 'ended:' .. (ids[i] or ''), now .. ' ' .. how, 'PX', 60000)
  end
  count(how, #ids)
end

-- True: somebody asked to cancel this run, and that is what ends it, whatever else was to become
-- of it. fence nil: the run whose lease is over.
local function cancelled(id, fence)
  local asked = call('EXISTS', CANCELS) == 1 and call('HGET', CANCELS, id)
  if not asked then
    return false
  end
  call('HDEL', CANCELS, id)
  if fence and fence ~= asked then
    return false
  end
  call('ZREM', RUNNING, id)
  call('DEL', LOCK .. id)
  remove({ id }, 'cancelled', true)
  return true
end

-- The queue's list of workers: alive until. Those that went within the hour stay in it, so that
-- a crash can be laid at somebody's door.
local function refresh_worker(worker, alive)
  open_writes()
  call('ZADD', WORKERS, now + alive, worker)
  call('ZREMRANGEBYSCORE', WORKERS, '-inf', now - 3600000)
  call('PEXPIRE', WORKERS, 7200000 + alive)
end

-- Bounds `dead` by count and age, at most 200 jobs at a time; their records go with them.
local function trim_dead(max, age)
  for pass = 1, 2 do
    local old
    if pass == 1 then
      old = call('ZRANGEBYSCORE', DEAD, '-inf', now - age, 'LIMIT', 0, 100)
    else
      local over = math.min(call('ZCARD', DEAD) - max, 100)
      old = over > 0 and call('ZRANGE', DEAD, 0, over - 1) or {}
    end
    each('ZREM', DEAD, old)
    each('HDEL', JOBS, old)
    clear_marks(old)
  end
end

local function read_meta()
  local m = call('HMGET', META, 'paused', 'max_running', 'rate_limit', 'rate_per', 'tokens',
    'tokens_at', 'promised', 'fence', 'big', 'calm')
  return {
    paused = m[1] == '1', max_running = tonumber(m[2] or 0), rate = tonumber(m[3] or 0),
    per = tonumber(m[4] or 0), tokens = tonumber(m[5] or false), tokens_at = tonumber(m[6] or 0),
    promised = tonumber(m[7] or false), fence = tonumber(m[8] or 0), big = m[9],
    calm = tonumber(m[10] or 0),
  }
end

-- The token bucket: how many jobs may start now. It holds a tenth of a period's jobs, so that no
-- second sees much more than its rate; and it is full when the clock was set back, by over 1 s.
local function tokens(m)
  local burst, ms = math.max(1, floor(m.rate / 10)), now - m.tokens_at
  return math.min(burst, (ms > -1000 and m.tokens or burst) + math.max(0, ms) * m.rate / m.per)
end

-- When the rate lets the next job start; 0: now.
local function next_token(m)
  local have = m.rate > 0 and tokens(m) or 1
  return have < 1 and now + math.ceil((1 - have) * m.per / m.rate) or 0
end

-- The earliest time at which a claim could succeed; nil: not by time alone.
local function next_claim(m)
  if m.paused then
    return nil
  end
  local first = call('ZRANGE', RUNNING, 0, 0, 'WITHSCORES')
  local at = first[2] and math.max(tonumber(first[2]), m.calm)
  if m.max_running > 0 and at and call('ZCARD', RUNNING) >= m.max_running then
    return at
  end
  local head = call('ZRANGE', SCHEDULE, 0, 0, 'WITHSCORES')
  if head[2] then
    local due = math.max(tonumber(head[2]), next_token(m))
    if not at or due < at then
      at = due
    end
  end
  return at
end

-- The baton rule, at the end of every script that can change when a claim could succeed. `wake`
-- holds at most one member, whose score is the time, or 0 for at once (who pops it knows this
-- clock only by what it heard last); whoever pops it owns its time. `promised` is the time for which
-- somebody has the baton or keeps its timer; only an earlier one wakes somebody. `clear`: the
-- promise was ours, or is doubted. `earliest`: not before (a claim that got nothing must not
-- leave a baton that is due).
local function baton(m, clear, earliest)
  local at = next_claim(m)
  if not at then
    if m.promised then
      call('DEL', WAKE)
      call('HDEL', META, 'promised')
    end
    return 0
  end
  at = math.max(floor(at), earliest or now)
  local promised = m.promised
  if clear or (promised and promised < now - BROKEN_MS) then
    promised = nil
  end
  if not promised or at < promised then
    open_writes()
    call('ZADD', WAKE, at <= now and 0 or at, 'baton')
    call('HSET', META, 'promised', at)
  end
  return at
end

-- Whose jobs are these? ARGV from `first` in steps of `step`: id, fence, ... of `worker`.
-- Returns the places in ARGV of those it holds, and a code for each; counts the others, where
-- the first `resent` were sent before: that their lock is gone probably means that they did it.
local function owned(worker, first, step, resent)
  local keys, n = {}, 0
  for i = first, #ARGV, step do
    n = n + 1
    keys[n] = LOCK .. ARGV[i]
  end
  local places, codes, seen, lost, unsure = {}, {}, {}, 0, 0
  local fence, token -- one claim gives many jobs the same
  local holders = n > 0 and call('MGET', unpack(keys))
  for k = 1, n do
    local i = first + (k - 1) * step
    local id = ARGV[i]
    if ARGV[i + 1] ~= fence then
      fence = ARGV[i + 1]
      token = worker .. ':' .. fence
    end
    if holders[k] == token and not seen[id] then
      seen[id], codes[k] = true, OK
      places[#places + 1] = i
    else
      codes[k] = call('HEXISTS', JOBS, id) == 1 and LOST or GONE
      if k > resent then
        lost = lost + 1
      elseif codes[k] == LOST then
        unsure = unsure + 1
      end
    end
  end
  return places, codes, lost, unsure
end
