-- Keep locks alive: each lease of this worker's that is named lasts from now on. A lock that ended
-- before its lease was over, because this clock was set forward, is made again. What the worker tells about
-- its runs comes with it.
--
--  KEYS[1]   prefix      hf:{queue}:
--  ARGV[1]   worker      its id
--  ARGV[2]   lease       ms from now, at least 1
--  ARGV[3]   not_after   ms on Redis's clock; 0: no limit
--  ARGV[4]   alive       ms for which the worker counts as alive; 0: no change
--  ARGV[5]   told        how many of the last arguments say something of a run, in threes
--  ARGV[6..] id, fence for each job, at most 1000; then, for what is told: the place of the job, from 1
--            on; `progress`, `checkpoint` or `log`; the text: `percent note`, `number checkpoint` or
--            `attempt from lines`
--  returns   {OK, now} (all held) | {OK, now, {code, ...}} | {LATE, now}; a code is OK (held),
--            CANCEL (held, with a request to cancel it), LOST. Sent twice: the same.
--- @step "steps/guard.lua"
if came_late(ARGV[3]) or ARGV[2] == '0' then
  return { LATE, now }
end
local args, worker, keys, ends = ARGV, ARGV[1], {}, {}
local told = #args - ARGV[5] -- behind this place
local n = (told - 5) / 2
if n == 0 then
  return { OK, now }
end
local known = call('HMGET', META, 'fence', 'clock')
local lease, clock = ARGV[2], known[2]
--- @step "steps/lease_end.lua"
for k = 1, n do
  keys[k] = LOCK .. args[4 + 2 * k]
end
-- The last one first, as in a claim; but in a large sorted set those that end first are found first.
local from, to, step = n, 1, -1
if n > 128 then
  from, to, step = 1, n, 1
end
for k = from, to, step do
  local last = #ends
  ends[last + 1], ends[last + 2] = lease_end, args[4 + 2 * k]
end
local holders = call('MGET', unpack(keys))

-- The usual case: all are held, and none is cancelled. Then no job needs a decision of its own.
local plain, highest, fence, token = call('EXISTS', CANCELS) == 0, 0, nil, nil
for k = 1, plain and n or 0 do
  if args[5 + 2 * k] ~= fence then
    fence = args[5 + 2 * k]
    token = worker .. ':' .. fence
    highest = math.max(highest, fence + 0)
  end
  if holders[k] ~= token then
    plain = false
    break
  end
end
open_writes()
local codes
if not plain or call('ZADD', RUNNING, 'XX', 'CH', unpack(ends)) < n then
  -- Not plain; or one is not in `running`, or named twice, or was moved in this ms.
  local ids, later, held, all = {}, {}, {}, true
  for k = 1, n do
    ids[k] = args[4 + 2 * k]
  end
  local scores, cancels = call('ZMSCORE', RUNNING, unpack(ids)), call('HMGET', CANCELS, unpack(ids))
  -- A lock that is missing has ended by this clock alone: the job has no other holder before its score is 0.
  codes, highest = {}, 0
  for k = n, 1, -1 do
    fence = args[5 + 2 * k]
    token = worker .. ':' .. fence
    local mine = scores[k] and holders[k] == token
    if scores[k] and scores[k] ~= '0' and not holders[k] then
      mine = call('SET', keys[k], token, 'NX', 'PXAT', lease_end)
    end
    if mine then
      codes[k] = cancels[k] and (cancels[k] == fence or cancels[k] == '*') and CANCEL or OK
      highest = math.max(highest, fence + 0)
      later[#later + 1], later[#later + 2] = lease_end, ids[k]
      held[#held + 1] = keys[k]
    else
      codes[k] = LOST
    end
    all = all and codes[k] == OK
  end
  keys, codes = held, not all and codes or nil
  if #later > 0 then
    call('ZADD', RUNNING, 'XX', unpack(later))
  end
end
for k = 1, #keys do
  call('PEXPIREAT', keys[k], lease_end)
end
if highest > (known[1] or 0) + 0 then
  -- A failover lost the last increments: later claims must rise above the fences shown here.
  call('HSET', META, 'fence', string.format('%d', highest))
end
if told < #args then
  for i = told + 1, #args, 3 do
    local k = args[i] + 0
    if not codes or codes[k] ~= LOST then
      tell[args[i + 1]](args[4 + 2 * k], args[5 + 2 * k], args[i + 2])
    end
  end
  note_use(MARKS, has_marks(P)) -- of runs that are lost nothing was kept
end
if ARGV[4] ~= '0' then
  refresh_worker(worker, ARGV[4] + 0, lease)
end
return { OK, now, codes }
