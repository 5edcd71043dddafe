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
local args, worker, n, ids, keys = ARGV, ARGV[1], (#ARGV - 4) / 2, {}, {}
for k = 1, n do
  local id = args[3 + 2 * k]
  ids[k], keys[k] = id, LOCK .. id
end
if n == 0 then
  return { OK, now }
end
local holders = call('MGET', unpack(keys))
local cancels = call('EXISTS', CANCELS) == 1 and call('HMGET', CANCELS, unpack(ids)) or {}
local known = call('HGET', META, 'fence')
local latest = call('ZRANGE', RUNNING, '-1', '-1', 'WITHSCORES')[2] or 0
local ends_at = now + ARGV[2]
local lease_end = string.format('%d', ends_at)

-- A score is dear to read: mostly no lease of the queue ends later than these shall, so none can
-- be shortened, and the number of those that were moved tells that all are there.
local scores = latest + 0 > ends_at and call('ZMSCORE', RUNNING, unpack(ids))
local held, ends, last, codes, fence, token, highest = {}, {}, 0, {}, nil, nil, 0
for k = 1, n do
  if args[4 + 2 * k] ~= fence then
    fence = args[4 + 2 * k]
    token = worker .. ':' .. fence
  end
  held[k] = holders[k] == token and (not scores or scores[k])
  if held[k] then
    codes[k] = cancels[k] == fence and CANCEL or OK
    highest = math.max(highest, fence + 0)
  else
    codes[k] = LOST
  end
end
for k = n, 1, -1 do -- the last one first, as in a claim
  if held[k] and (not scores or scores[k] + 0 < ends_at) then
    ends[last + 1], ends[last + 2] = lease_end, ids[k]
    last = last + 2
  end
end
open_writes()
local moved = last > 0 and call('ZADD', RUNNING, 'XX', 'CH', unpack(ends)) or 0
if not scores and 2 * moved < last then -- not in `running`, or named twice, or moved in this ms
  scores = call('ZMSCORE', RUNNING, unpack(ids))
  for k = 1, n do
    held[k] = held[k] and scores[k]
    codes[k] = held[k] and codes[k] or LOST
  end
end
local all = true
for k = 1, n do
  if held[k] and (not scores or scores[k] + 0 <= ends_at) then
    call('PEXPIREAT', keys[k], lease_end)
  end
  all = all and codes[k] == OK
end
if highest > (known or 0) + 0 then
  -- A failover lost the last increments: later claims must rise above what was shown.
  call('HSET', META, 'fence', string.format('%d', highest))
end
if ARGV[4] ~= '0' then
  -- prelude: refresh_worker
  refresh_worker(worker, ARGV[4] + 0)
end
return { OK, now, not all and codes or nil }
