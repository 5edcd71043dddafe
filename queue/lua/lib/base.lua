-- base.lua - the prefix of all keys, the status of an answer, the time, and bounds: the top of each script.
-- Every script answers {status, now, ...}: status is a number of error.h, 0 or below; now is TIME in ms. A
-- script reads and refuses first and writes last, because scripts do not roll back. Under `maxmemory` all
-- but enqueue begin their writing with open_writes().

local call, concat, floor = redis.call, table.concat, math.floor
local P = KEYS[1]
local OK, EXISTS, LOST, GONE, LATE, CANCEL, RUNS, IS_DEAD = 0, -1, -2, -3, -4, -5, -6, -7

-- Redis and Lua are slow to make a text of a number (by printf), so now is there as both.
local time = call('TIME')
local micros = string.sub('00000' .. time[2], -6) -- six digits
local stamp = time[1] .. string.sub(micros, 1, 3)
local now = stamp + 0

-- No time is later than the end of the year 9999, and no delay is longer than 100 years, in ms. The
-- same two bounds are in include/holdfast/producer.h.
local TIME_MAX, DELAY_MAX = 253402300799999, 3155760000000

local BROKEN_MS = 100 -- a time that is further past has been missed by its worker

-- `high` is the latest time that was seen here, to within HIGH_MS. If it is ahead, the clock was set
-- back: jobs that were due by then stay due, in their order, a slice of them at a time, or this many
-- slices. Jobs that were to come later wait for their time on the clock as it is now.
local HIGH_MS, STEP_BACK_JOBS = 100, 1000

local SLICE = 3000 -- arguments in one call; Lua's unpack ends near 8000

local MAX_BYTES = 8388608 -- of records in a claim
