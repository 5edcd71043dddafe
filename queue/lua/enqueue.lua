-- Accept jobs, all or none.
--
--  KEYS[1]   prefix      hf:{queue}:
--  ARGV[1]   producer    a name; '' : nothing is remembered, and number does not matter
--  ARGV[2]   number      of this request; new ones rise for each producer and queue, and one
--                        that is sent again is less than SPAN below the highest
--  ARGV[3]   not_after   ms on Redis's clock; 0: no limit
--  ARGV[4]   remember    ms for which the number is remembered
--  ARGV[5]   waited      ms since the call was made: taken off the delays
--  ARGV[6..] id, due, record for each job: due is 0 (now), an absolute time in ms, or the
--            negative of a delay in ms; a record is `{"type":"T","created":MS}\npayload`
--  ARGV[last] made       may be left out: a letter for each job, the last one for all that follow;
--            n: its id was made for it and must be new, or nothing is changed
--  returns   {OK, now, repeated, codes} | {LATE, now} | {EXISTS, now, 0, codes}
--            repeated 1: the number was executed before, nothing was changed, all are accepted;
--            codes: empty when all are new, else one for each: OK, EXISTS (queued), RUNNING,
--            DEAD. Of an id that is named twice the first counts.
local SPAN = 32
-- What is remembered of a producer: the highest number that was executed, and a bit for each of
-- the SPAN numbers up to it. A number that was refused (the script was not known, or memory was
-- full) may be followed by one that was executed, and its answer may be lost: the highest number
-- alone would then say that it was executed too, and its jobs would be nowhere.
local SEEN, number, highest, bits = P .. 'seen:' .. ARGV[1], tonumber(ARGV[2]), ARGV[2], 1
if ARGV[1] ~= '' then
  local seen = call('GET', SEEN)
  if seen then
    local known, mask = string.match(seen, '^(%d+):(-?%d+)$')
    local age = tonumber(known) - number
    if age >= SPAN or age >= 0 and bit.band(mask, bit.lshift(1, age)) ~= 0 then
      return { OK, now, 1, {} }
    end
    if age >= 0 then
      highest, bits = known, bit.bor(mask, bit.lshift(1, age))
    elseif age > -SPAN then
      bits = bit.bor(bit.lshift(mask, -age), 1)
    end
  end
end
if late(ARGV[3]) then
  return { LATE, now }
end
local ids, n = {}, 0
for i = 6, #ARGV - 1, 3 do
  n = n + 1
  ids[n] = ARGV[i]
end
local made = ARGV[6 + 3 * n] or ''
local BIG_BYTES = 8192 -- a claim need not weigh records up to this size
local codes, taken, plain = {}, {}, true
for set, code in pairs({ [SCHEDULE] = EXISTS, [RUNNING] = RUNS, [DEAD] = IS_DEAD }) do
  if call('EXISTS', set) == 1 then
    for from = 1, n, SLICE do
      local scores = call('ZMSCORE', set, unpack(ids, from, math.min(from + SLICE - 1, n)))
      for k = 1, #scores do
        if scores[k] then
          codes[from + k - 1], plain = code, false
        end
      end
    end
  end
end
local waited, records, times, new, big = tonumber(ARGV[5]), {}, {}, 0, false
for k = 1, n do
  local i, id = 3 + 3 * k, ids[k]
  if taken[id] then
    codes[k], plain = codes[k] or EXISTS, false
  elseif not codes[k] then
    taken[id], codes[k] = true, OK
    local due, record = tonumber(ARGV[i + 1]), ARGV[i + 2]
    if due <= 0 then
      due = now + math.max(0, -due - waited)
    end
    records[2 * new + 1], records[2 * new + 2] = id, record
    times[2 * new + 1], times[2 * new + 2] = due, id
    new, big = new + 1, big or #record > BIG_BYTES
  end
end
for k = 1, (made == '' or plain) and 0 or n do
  local at = math.min(k, #made)
  if codes[k] ~= OK and string.sub(made, at, at) == 'n' then
    return { EXISTS, now, 0, codes }
  end
end
each('HSET', JOBS, records)
each('ZADD', SCHEDULE, times)
-- How an earlier job of this id ended is no word on the new one.
if call('EXISTS', P .. 'ended:') == 1 then
  for k = 2, 2 * new, 2 do
    call('DEL', P .. 'ended:' .. times[k])
  end
end
if ARGV[1] ~= '' then
  call('SET', SEEN, highest .. ':' .. bits, 'PX', ARGV[4])
end
local m = read_meta()
if new > 0 then
  if big and not m.big then
    call('HSET', META, 'big', 1)
  end
  count('enqueued', new)
  baton(m, false)
end
return { OK, now, 0, plain and {} or codes }
