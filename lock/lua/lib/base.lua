-- base.lua - shared by all scripts: its answers, the prefix, the time.
--
-- KEYS[1] is the prefix of a tag, `hf:lock:{tag}:`; all keys of its locks begin with it, and one
-- script can take several of them. A lock `n` has two forms, which exclude each other:
--
--   cell:n   a string `owner:fence` that ends with its lease
--   the line x:n sorted set, owner: when its lease began, by the line's clock; q:n sorted set of
--   the waiters, owner: place; e:n hash, owner: its entry, and '#': the grants and the line's clock
--
-- An entry is a lease, also while it waits. Its place and its mode decide the grant, and the first
-- script that finds that it can be granted does so. A message in the inbox `in:<client>` only
-- reports the grant sooner. A message in `in:<client>/held` says that the lock was taken away, or
-- is asked back. Other keys: `fence`, the one counter of the tag, and `guard:<resource>`.
-- The first command reads two keys that never exist: see queue/lua/steps/guard.lua. Every
-- script answers {status, now, ...}: status is a number of error.h; now is TIME in ms. It reads and
-- refuses first and writes last, because scripts do not roll back.

local call, concat, floor, match = redis.call, table.concat, math.floor, string.match
local OK, LOST, LATE, CANCEL, TAKEN, DEADLOCK, WAITING = 0, -2, -4, -5, -9, -10, -11
local P = KEYS[1]
local time = call('TIME')
local now = time[1] * 1000 + floor(time[2] / 1000)
