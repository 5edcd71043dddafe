-- Keep locks alive. Creates nothing, never shortens.
--
--  KEYS[1]   prefix      hf:{queue}:
--  ARGV[1]   worker      its id
--  ARGV[2]   lease       ms from now, at least 1
--  ARGV[3]   not_after   ms on Redis's clock; 0: no limit
--  ARGV[4]   alive       ms for which the worker counts as alive; 0: no change
--  ARGV[5..] id, fence for each job, at most 1000
--  returns   {OK, now} (all held) | {OK, now, {code, ...}} | {LATE, now}; a code is OK (held until
--            now + lease), CANCEL (held, and somebody asks to cancel it), LOST. Sent twice: the
--            same.
if late(ARGV[3]) or ARGV[2] + 0 < 1 then
  return { LATE, now }
end
local args, worker, n, keys, ends = ARGV, ARGV[1], (#ARGV - 4) / 2, {}, {}
if n == 0 then
  return { OK, now }
end
local ends_at = now + args[2]
local lease_end = string.format('%d', ends_at)
for k = 1, n do
  keys[k] = LOCK .. args[3 + 2 * k]
end
-- The last one first, as in a claim; but in a large sorted set those that end first are found first.
local from, to, step = n, 1, -1
if n > 128 then
  from, to, step = 1, n, 1
end
for k = from, to, step do
  local last = #ends
  ends[last + 1], ends[last + 2] = lease_end, args[3 + 2 * k]
end
local holders = call('MGET', unpack(keys))
local known = call('HGET', META, 'fence') or 0
local latest = call('ZRANGE', RUNNING, '-1', '-1', 'WITHSCORES')[2] or 0
local cancelling = call('EXISTS', CANCELS) == 1

-- Mostly all are held, nobody is to be cancelled, and no lease of the queue ends later than these
-- shall, so none can be shortened: then nothing is to be decided for each.
local plain, highest, fence, token = not cancelling and latest + 0 <= ends_at, 0, nil, nil
for k = 1, plain and n or 0 do
  if args[4 + 2 * k] ~= fence then
    fence = args[4 + 2 * k]
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
  local ids, later, held = {}, {}, {}
  for k = 1, n do
    ids[k] = args[3 + 2 * k]
  end
  local scores = call('ZMSCORE', RUNNING, unpack(ids))
  local cancels = cancelling and call('HMGET', CANCELS, unpack(ids)) or {}
  codes, highest = {}, 0
  local all = true
  for k = n, 1, -1 do
    fence = args[4 + 2 * k]
    if holders[k] ~= worker .. ':' .. fence or not scores[k] then
      codes[k] = LOST
    else
      codes[k] = cancels[k] == fence and CANCEL or OK
      highest = math.max(highest, fence + 0)
      if scores[k] + 0 < ends_at then
        later[#later + 1], later[#later + 2] = lease_end, ids[k]
      end
      if scores[k] + 0 <= ends_at then
        held[#held + 1] = keys[k]
      end
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
if highest > known + 0 then
  -- A failover lost the last increments: later claims must rise above what was shown.
  call('HSET', META, 'fence', string.format('%d', highest))
end
if ARGV[4] ~= '0' then
  -- prelude: refresh_worker
  refresh_worker(worker, ARGV[4] + 0)
end
return { OK, now, codes }
