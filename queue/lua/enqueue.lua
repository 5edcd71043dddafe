-- Accept jobs, all or none.
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
--            `ERR holdfast:` changes nothing.
--  returns   {OK, now, repeated, codes} | {LATE, now} | {EXISTS, now, 0, codes}
--            repeated 1: the number was executed before, nothing was changed, all are accepted;
--            codes: empty when all are new, else one for each: OK, EXISTS (queued), RUNNING,
--            DEAD. Of an id that is named twice the first counts. A queue that is divided into
--            shards answers the error `SHARDED holdfast: <number> <tag> <tag> ...`: nothing was
--            changed, and its jobs belong to the queues with these tags.
--- @include "lib/base.lua"
--- @include "lib/keys.lua"
--- @include "lib/key_dead.lua"
--- @include "lib/bounds.lua"
--- @include "lib/slice.lua"
--- @include "lib/high.lua"
local SPAN = 32
local BIG_BYTES = 8192 -- a claim need not weigh records up to this size
local args, n = ARGV, floor((#ARGV - 5) / 3)
local made = args[6 + 3 * n] or ''

-- To look at each character of each id costs a fifth of a large request.
if made ~= 'N' and made ~= 'C' and not string.find(made, '^[NC]') then
  --- @include "lib/digits.lua"
  local function must(good, k, what)
    if not good then
      error(string.format('holdfast: %s: expected %s', k and 'job ' .. k or 'enqueue', what), 0)
    end
  end
  local function is_name(text)
    return #text <= 128 and string.find(text, '^[%w%._:%-]+$')
  end
  local function is_record(text)
    local ok, head = pcall(cjson.decode, string.match(text, '^({[^\n]*})\r?\n'))
    return ok and #text <= 67108864 and type(head.type) == 'string' and is_name(head.type)
  end
  must(n >= 1 and n <= 10000 and (#args - 5) % 3 < 2, nil, 'id, due, record of 1 to 10000 jobs')
  must(args[1] == '' or is_name(args[1]), nil, 'a producer, 1 to 128 of A-Z a-z 0-9 . _ : -')
  digits(args[2], 2 ^ 53)
  digits(args[3], TIME_MAX)
  must(digits(args[4], DELAY_MAX) > 0 or args[1] == '', nil, 'to remember a number for 1 ms or more')
  digits(args[5], DELAY_MAX)
  for k = 1, n do
    local i = 3 + 3 * k
    local due = string.find(args[i + 1], '^%-?%d+$') and args[i + 1] + 0
    must(is_name(args[i]), k, 'an id, 1 to 128 of A-Z a-z 0-9 . _ : -')
    must(due and due >= -DELAY_MAX and due <= TIME_MAX, k, 'to be due at 0, a time, or minus a delay')
    must(is_record(args[i + 2]), k, 'a record: a line of JSON with a type, a newline, the payload; '
      .. 'at most 64 MiB')
  end
end

-- What is remembered of a producer: the highest number that was executed, and a bit for each of
-- the SPAN numbers up to it. A number that was refused (the script was not known, or memory was
-- full) may be followed by one that was executed, and its answer may be lost: the highest number
-- alone would then say that it was executed too, and its jobs would be nowhere.
local SEEN, highest, bits = P .. 'seen:' .. ARGV[1], ARGV[2], '1'
local words = call('MGET', SEEN, P .. 'ended:', P) -- P: lib/guard.lua
if words[1] and ARGV[1] ~= '' then
  local known, mask = string.match(words[1], '^(%d+):(-?%d+)$')
  local age = known - ARGV[2]
  if age >= SPAN or age >= 0 and bit.band(mask, bit.lshift(1, age)) ~= 0 then
    return { OK, now, 1, {} }
  end
  if age >= 0 then
    highest, bits = known, bit.bor(mask, bit.lshift(1, age))
  elseif age == -1 and mask == '-1' then -- as it is in the long run
    bits = mask
  elseif age > -SPAN then
    bits = bit.bor(bit.lshift(mask, -age), 1)
  end
end
if ARGV[3] ~= '0' and now > ARGV[3] + 0 then
  return { LATE, now }
end

-- Which ids are known; mostly none is, and then there are no codes.
local codes
local sets = call('EXISTS', SCHEDULE, RUNNING, DEAD)
if sets > 0 then
  local ids, set, code = {}, SCHEDULE, EXISTS
  for k = 1, n do
    ids[k] = args[3 + 3 * k]
  end
  for place = 1, 3 do
    if n < 8 or sets == 3 or call('EXISTS', set) == 1 then
      for from = 1, n, SLICE do
        local scores = call('ZMSCORE', set, unpack(ids, from, math.min(from + SLICE - 1, n)))
        for k = 1, #scores do
          if scores[k] then
            codes = codes or {}
            codes[from + k - 1] = code
          end
        end
      end
    end
    if place == 1 then
      set, code = RUNNING, RUNS
    else
      set, code = DEAD, IS_DEAD
    end
  end
end

local records, times, new, last, taken, soonest, big = {}, {}, 0, '', nil, math.huge, false
for k = 1, n do
  local i = 3 + 3 * k
  local id, due, record = args[i], args[i + 1], args[i + 2]
  local known = codes and codes[k]
  if not known and (taken or id <= last) then -- while ids rise none is named twice
    if not taken then
      taken = {}
      for j = 1, 2 * new, 2 do
        taken[records[j]] = true
      end
    end
    known = taken[id]
    if known then
      codes = codes or {}
      codes[k] = EXISTS
    end
    taken[id] = true
  end
  if not known then
    if due == '0' then
      due, soonest = stamp, now
    else
      local at = due + 0
      if at <= 0 then
        at = now + math.max(0, -at - ARGV[5])
        due = at
      end
      soonest = math.min(soonest, math.max(at, now))
    end
    local j = 2 * new + 1
    records[j], records[j + 1] = id, record
    times[j], times[j + 1] = due, id
    new, last, big = new + 1, id, big or #record > BIG_BYTES
  end
end
if codes then
  local refused = false
  for k = 1, n do
    local at = math.min(k, #made)
    refused = refused or codes[k] and string.find(made, '^[nN]', at)
    codes[k] = codes[k] or OK
  end
  if refused then
    return { EXISTS, now, 0, codes }
  end
end
local m = call('HMGET', META, 'next_wake', 'uses', 'high')
local next_wake, uses, high = m[1] and m[1] + 0, m[2], m[3] and m[3] + 0 or 0
--- @step "lib/sharded.lua"

if now < high then
  call('HSET', META, 'high', m[3]) -- changes nothing, but a full Redis refuses it, and so all
  --- @include "lib/open_writes.lua"
  --- @include "lib/later.lua"
  for j = 1, 2 * new, 2 do
    times[j] = times[j] ~= stamp and string.format('%d', later(times[j] + 0)) or stamp
  end
end
for i = 1, 2 * new, SLICE do
  local to = math.min(i + SLICE - 1, 2 * new)
  call('HSET', JOBS, unpack(records, i, to))
  call('ZADD', SCHEDULE, unpack(times, i, to))
end
if words[2] then -- how an earlier job of this id ended is no word on the new one
  for j = 1, 2 * new, 2 do
    call('DEL', P .. 'ended:' .. records[j])
  end
end
if ARGV[1] ~= '' then
  call('SET', SEEN, highest .. ':' .. bits, 'PX', ARGV[4])
end
if new > 0 then
  call('HINCRBY', META, 'enqueued', new == 1 and '1' or new)
  if big then
    --- @include "lib/uses.lua"
    note_use('b', true)
  end
end
if new == 0 then
  return { OK, now, 0, codes }
elseif now > high + HIGH_MS then
  call('HSET', META, 'high', stamp)
end

-- The wake rule. Where a limit counts, or a time has come that others may have used, it has to look;
-- else the next claim is for the first of these jobs, unless a worker comes sooner anyway.
if uses and string.find(uses, '[pnr]') or soonest > now and next_wake and next_wake <= now then
  --- @include "lib/wake.lua"
  wake(read_meta())
else
  local at, doubted = soonest, false
  --- @step "lib/wake_rule.lua"
end
return { OK, now, 0, codes or {} }
