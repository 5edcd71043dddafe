-- Accept jobs, all or none, some of which have options: as enqueue, which takes those without.
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
--            `{"type":"T","created":MS,"priority":"high"}\npayload`, at most 64 MiB; docs/keys.md
--            lists the options
--  ARGV[last] made       may be left out: a letter for each job, the last one for all that follow;
--            n: its id was made for it and must be new, or nothing is changed; any other: it was
--            chosen. A first letter N (as n) or C (chosen) says that the caller has checked all
--            arguments, as the library has. Else the script does so, and an error that begins with
--            `ERR holdfast:` changes nothing.
--  returns   {OK, now, repeated, codes, conflicts, awaited} | {LATE, now} | {EXISTS, now, 0, codes}
--            repeated 1: the number was executed before, nothing was changed, and the answer is the
--            same as then;
--            codes: empty when all are new, else one for each: OK, EXISTS (queued), RUNNING,
--            DEAD. Of an id that is named twice the first counts. conflicts: may be left out; of each
--            job whose unique key another one holds: place, how, id, state (lib/conflicts.lua);
--            its code is EXISTS unless it is parked. awaited: may be left out; of each job with this
--            option: place, accepted (lib/marks.lua) of the job that is there for it, 0: none. A queue that is divided into
--            shards answers the error `SHARDED holdfast: <number> <tag> <tag> ...`: nothing was
--            changed, and its jobs belong to the queues with these tags.
local BIG_BYTES = 8192 -- a claim need not weigh records up to this size
local args, n = ARGV, floor((#ARGV - 5) / 3)
local made, optional = args[6 + 3 * n] or '', true
--- @step "steps/check_request.lua"
--- @step "steps/seen.lua"
if ARGV[3] ~= '0' and now > ARGV[3] + 0 then
  return { LATE, now }
end
local m = call('HMGET', META, 'next_wake', 'uses', 'high')
local next_wake, uses, high = m[1] and m[1] + 0, m[2], m[3] and m[3] + 0 or 0
--- @step "steps/sharded.lua"
--- @step "steps/known.lua"

-- 1. Read the options of each job.
local records, times, heads, new, last, taken, soonest, big = {}, {}, {}, 0, '', nil, math.huge, false
local options_of, homes, expiring, usual, starting, awaiting = {}, nil, false, true, false, codes
local named, entries, keyed, conflicts = {}, {}, 0, nil -- unique keys; {key, id, ...}
local awaited, died -- {place, accepted, ...}; the id of a dead job is taken
local revived = {} -- ids of dead jobs that new ones replace; they end as deleted
for k = 1, n do
  local i = 3 + 3 * k
  local id, due, record = args[i], args[i + 1], args[i + 2]
  local known = codes and codes[k]
  if known == IS_DEAD and string.find(record, '^[^\n]*"replace_dead":%s*1') then
    known, codes[k] = nil, nil
    if not revived[id] then
      revived[#revived + 1], revived[id] = id, true
    end
  end
  --- @step "steps/named_twice.lua"
  if not known then
    --- @step "steps/due.lua"
    --- @step "steps/read_options.lua"
    local j = 2 * new + 1
    records[j], records[j + 1] = id, record
    times[j], times[j + 1] = due, id
    new, last, big = new + 1, id, big or #record > BIG_BYTES
    heads[new] = options
    if key then
      keyed = keyed + 1
      named[keyed], entries[2 * keyed - 1], entries[2 * keyed] = key, key, id
    end
  end
end
--- @step "steps/refused.lua"
if #revived > 0 then
  for i = 1, #revived, 1000 do
    leave('deleted', { unpack(revived, i, math.min(i + 999, #revived)) }, DEAD)
  end
  words[2], conflicts = true, {} -- its end is no word on the new one; another job may wait now
end

-- 2. Put the new ones where they belong.
--- @step "steps/due_later.lua"
local first, upto = 1, new -- those that are left
if keyed > 0 then
  --- @step "steps/unique_keys.lua"
end
--- @step "steps/put_jobs.lua"
if awaiting then
  --- @step "steps/note_awaited.lua"
end
--- @step "steps/accepted.lua"
