-- Accept jobs, all or none.
-- Stable since 0.2: clients of all languages call it (docs/keys.md).
--
--  KEYS[1]   prefix      hf:{queue}:
--  ARGV[1]   producer    a name; '' : nothing is remembered, and number does not matter
--  ARGV[2]   number      of this request; new ones rise for each producer and queue, and one
--                        that is sent again is less than SPAN below the highest
--  ARGV[3]   not_after   ms on Redis's clock; 0: no limit
--  ARGV[4]   remember    ms for which the number is remembered
--  ARGV[5]   waited      ms since the call was made: taken off the delays
--  ARGV[6..] id, due, record for each job, 1 to 10,000: an id as every name; due is 0 (now), an
--            absolute time in ms, or the negative of a delay in ms; a record is
--            `{"type":"T","created":MS}\npayload`, at most 64 MiB
--  ARGV[last] made       may be left out: a letter for each job, the last one for all that follow;
--            n: its id was made for it and must be new, or nothing is changed; any other: it was
--            chosen. A first letter N (as n) or C (chosen) says that the caller has checked all
--            arguments, as the library has. Else the script does so, and an error that begins with
--            `ERR holdfast:` changes nothing. It refuses a record that names an option of a job, as
--            `priority`: enqueue_with takes such jobs.
--  returns   {OK, now, repeated, codes} | {LATE, now} | {EXISTS, now, 0, codes}
--            repeated 1: the number was executed before, nothing was changed, all are accepted;
--            codes: empty when all are new, else one for each: OK, EXISTS (queued), RUNNING,
--            DEAD. Of an id that is named twice the first counts. A queue that is divided into
--            shards answers the error `SHARDED holdfast: <number> <tag> <tag> ...`: nothing was
--            changed, and its jobs belong to the queues with these tags.
local BIG_BYTES = 8192 -- a claim need not weigh records up to this size
local args, n = ARGV, floor((#ARGV - 5) / 3)
local made, optional = args[6 + 3 * n] or '', false
--- @step "steps/check_request.lua"
--- @step "steps/seen.lua"
if ARGV[3] ~= '0' and now > ARGV[3] + 0 then
  return { LATE, now }
end
local m = call('HMGET', META, 'next_wake', 'uses', 'high')
local next_wake, uses, high = m[1] and m[1] + 0, m[2], m[3] and m[3] + 0 or 0
--- @step "steps/sharded.lua"
--- @step "steps/known.lua"

local records, times, new, last, taken, soonest, big = {}, {}, 0, '', nil, math.huge, false
local conflicts, awaited -- no job has a unique key, or is waited for
local died -- the id of a dead job is taken
for k = 1, n do
  local i = 3 + 3 * k
  local id, due, record = args[i], args[i + 1], args[i + 2]
  local known = codes and codes[k]
  --- @step "steps/named_twice.lua"
  if not known then
    --- @step "steps/due.lua"
    local j = 2 * new + 1
    records[j], records[j + 1] = id, record
    times[j], times[j + 1] = due, id
    new, last, big = new + 1, id, big or #record > BIG_BYTES
  end
end
--- @step "steps/refused.lua"

--- @step "steps/due_later.lua"
for i = 1, 2 * new, SLICE do
  local to = math.min(i + SLICE - 1, 2 * new)
  call('HSET', JOBS, unpack(records, i, to))
  call('ZADD', SCHEDULE, unpack(times, i, to))
end
--- @step "steps/accepted.lua"
