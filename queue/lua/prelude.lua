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

-- What looks at several queues: from now on at this one.
local function use(prefix)
  SCHEDULE, RUNNING, META = prefix .. 'schedule', prefix .. 'running', prefix .. 'meta'
  WAKE, WORKERS = prefix .. 'wake', prefix .. 'workers'
end

-- Redis and Lua are slow to make a text of a number (by printf), so now is there as both.
local time = call('TIME')
local micros = string.sub('00000' .. time[2], -6) -- six digits
local stamp = time[1] .. string.sub(micros, 1, 3)
local now = stamp + 0

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

-- The queue's list of workers: alive until. Those that went within the hour stay in it, so that
-- a crash can be laid at somebody's door.
local function refresh_worker(worker, alive)
  open_writes()
  call('ZADD', WORKERS, now + alive, worker)
  call('ZREMRANGEBYSCORE', WORKERS, '-inf', now - 3600000)
  call('PEXPIRE', WORKERS, 7200000 + alive)
end
