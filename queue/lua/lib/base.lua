-- base.lua - the prefix of all keys, the status of an answer, and the time. Every script answers
-- {status, now, ...}: status is a number of error.h, 0 or below; now is TIME in ms. A script reads and
-- refuses first and writes last, because scripts do not roll back. Under `maxmemory` all but enqueue
-- begin their writing with open_writes().
local call, concat, floor = redis.call, table.concat, math.floor
local P = KEYS[1]
local OK, EXISTS, LOST, GONE, LATE, CANCEL, RUNS, IS_DEAD = 0, -1, -2, -3, -4, -5, -6, -7

-- Redis and Lua are slow to make a text of a number (by printf), so now is there as both.
local time = call('TIME')
local micros = string.sub('00000' .. time[2], -6) -- six digits
local stamp = time[1] .. string.sub(micros, 1, 3)
local now = stamp + 0
