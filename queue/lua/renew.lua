-- Keep locks alive. Creates nothing, never shortens.
--
--  KEYS[1]   prefix      hf:{queue}:
--  ARGV[1]   worker      its id
--  ARGV[2]   lease       ms from now, at least 1
--  ARGV[3]   not_after   ms on Redis's clock; 0: no limit
--  ARGV[4]   alive       ms for which the worker counts as alive; 0: no change
--  ARGV[5..] id, fence for each job, at most 1000
--  returns   {OK, now, {code, ...}} | {LATE, now}; a code is OK (held until now + lease),
--            CANCEL (held, and somebody asks to cancel it), LOST. Sent twice: the same.
local worker, lease = ARGV[1], tonumber(ARGV[2])
if late(ARGV[3]) or lease < 1 then
  return { LATE, now }
end
local ids, keys, codes, ends, highest = {}, {}, {}, {}, 0
for i = 5, #ARGV, 2 do
  ids[#ids + 1], keys[#keys + 1] = ARGV[i], LOCK .. ARGV[i]
end
if #ids == 0 then
  return { OK, now, codes }
end
local holders = call('MGET', unpack(keys))
local scores = call('ZMSCORE', RUNNING, unpack(ids))
local cancels = call('EXISTS', CANCELS) == 1 and call('HMGET', CANCELS, unpack(ids)) or {}
for k = 1, #ids do
  local fence = ARGV[4 + 2 * k]
  if scores[k] and holders[k] == worker .. ':' .. fence then
    if tonumber(scores[k]) < now + lease then
      call('PEXPIREAT', keys[k], now + lease)
      ends[#ends + 1], ends[#ends + 2] = now + lease, ids[k]
    end
    codes[k] = cancels[k] == fence and CANCEL or OK
    highest = math.max(highest, tonumber(fence))
  else
    codes[k] = LOST
  end
end
if #ends > 0 then
  call('ZADD', RUNNING, 'XX', unpack(ends))
end
local m = read_meta()
if highest > m.fence then
  -- A failover lost the last increments: later claims must rise above what was shown.
  open_writes()
  call('HSET', META, 'fence', string.format('%.0f', highest))
end
if ARGV[4] ~= '0' then
  refresh_worker(worker, tonumber(ARGV[4]))
end
return { OK, now, codes }
