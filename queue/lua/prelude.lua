-- prelude.lua - what scripts share; prelude_*.lua are more of it. The build puts in front of each
-- script the definitions that it uses, and only those: Redis makes all of them anew for each call.
--
-- KEYS[1] is the queue's prefix, `hf:{name}:`; all keys of the queue begin with it and share its
-- hash tag. A script reads and refuses first and writes last, because scripts do not roll back.
-- Every script answers {status, now, ...}: status is a number of error.h, 0 or below; now is
-- TIME in ms. Under `maxmemory` all but enqueue begin their writing with open_writes().

local call, concat, floor = redis.call, table.concat, math.floor
local OK, EXISTS, LOST, GONE, LATE, CANCEL, RUNS, IS_DEAD = 0, -1, -2, -3, -4, -5, -6, -7
local SLICE = 3000 -- arguments in one call; Lua's unpack ends near 8000

local P = KEYS[1]
local SCHEDULE = P .. 'schedule'
local RUNNING = P .. 'running'
local DEAD = P .. 'dead'
local JOBS = P .. 'jobs'
local LOCK = P .. 'lock:'
local META = P .. 'meta'
local WAKE = P .. 'wake'
local CRASHES = P .. 'crashes'
local CANCELS = P .. 'cancel'
local WORKERS = P .. 'workers'
local LEASES = P .. 'leases'

-- What looks at several queues: from now on at this one.
local function use(prefix)
  LOCK = prefix .. 'lock:'
  SCHEDULE, RUNNING, META = prefix .. 'schedule', prefix .. 'running', prefix .. 'meta'
  WAKE, WORKERS, LEASES = prefix .. 'wake', prefix .. 'workers', prefix .. 'leases'
end

-- Redis and Lua are slow to make a text of a number (by printf), so now is there as both.
local time = call('TIME')
local micros = string.sub('00000' .. time[2], -6) -- six digits
local stamp = time[1] .. string.sub(micros, 1, 3)
local now = stamp + 0

-- No time is later than the end of the year 9999, and no delay is longer than 100 years, in ms. The
-- same two bounds are in include/holdfast/producer.h.
local TIME_MAX, DELAY_MAX = 253402300799999, 3155760000000

-- An argument that is a number: digits, at most `most`. Anything else (nan, inf, 1e30, 0x10, 0.5) is
-- refused; so a script reads its numbers before it writes anything.
local function digits(text, most)
  local value = string.find(text, '^%d+$') and tonumber(text)
  if not value or value > most then
    error(string.format('holdfast: expected a number from 0 to %.0f, found %s', most,
      string.gsub(string.sub(text, 1, 32), '%c', '?')), 0)
  end
  return value
end

-- A number that a holder says of its job: `most` if it is more, 0 if it is below. A verdict that was
-- refused for its delay would be sent again and again.
local function clamped(text, most)
  return math.min(most, digits(string.gsub(text, '^%-%d+$', '0'), math.huge))
end

-- A score as a time that can be answered; other hands may have written one that is none.
local function time_of(score)
  return math.max(-TIME_MAX, math.min(TIME_MAX, score))
end

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

local function count(field, by)
  if by > 0 then
    call('HINCRBY', META, field, by)
  end
end

-- The queue's lists of workers, and of the lengths of their leases: alive until. Those that went
-- within the hour stay: a crash names the workers that are gone, and their leases may still count.
-- No step of this clock may forget a length. So that list has no end, and where nobody of it is alive
-- any more, which may be the doing of a step, its hours begin now.
local function refresh_worker(worker, alive, lease)
  alive = math.max(0, math.min(DELAY_MAX, alive))
  open_writes()
  local latest = call('ZRANGE', LEASES, -1, -1, 'WITHSCORES')[2]
  if latest and latest + 0 < now then
    for _, length in ipairs(call('ZRANGE', LEASES, 0, -1)) do
      call('ZINCRBY', LEASES, string.format('%d', now - latest), length)
    end
  end
  for _, list in ipairs({ WORKERS, LEASES }) do
    call('ZADD', list, now + alive, list == WORKERS and worker or lease)
    call('ZREMRANGEBYSCORE', list, '-inf', now - 3600000)
  end
  call('PEXPIRE', WORKERS, 7200000 + alive)
  call('ZREMRANGEBYRANK', LEASES, 0, -17) -- more lengths than 16 are a mistake
end

-- The longest lease that a job of this queue may have, ms.
local function longest_lease()
  local longest = 0
  for _, lease in ipairs(call('ZRANGE', LEASES, 0, -1)) do
    longest = math.max(longest, lease + 0)
  end
  return longest
end

-- When a lease ends that starts now, as a number and as text: at an even ms. It starts no sooner
-- than at the time that its holder knows of: that is ahead of this clock while others may not have
-- seen yet that it was set back. A holder that knows none (0) is new to this clock; an odd ms marks
-- that, and such a lease is over a lease later (docs/design.md, "Redis's clock"). Half a ms as the
-- mark would cost too much: in a small sorted set Redis keeps what is no integer as text.
local function lease_ends(lease, at_least)
  local ends_at = math.max(now, digits(at_least, TIME_MAX)) + digits(lease, DELAY_MAX)
  ends_at = ends_at + (ends_at + (at_least == '0' and 1 or 0)) % 2
  return ends_at, string.format('%d', ends_at)
end
