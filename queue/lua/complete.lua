-- Jobs are done: remove those that this worker holds.
--
--  KEYS[1]   prefix      hf:{queue}:
--  ARGV[1]   worker      its id
--  ARGV[2]   not_after   ms on Redis's clock; 0: no limit
--  ARGV[3]   resent      the first so many were sent before, without an answer
--  ARGV[4..] id, fence for each job, at most 1000
--  returns   {OK, now} (all done) | {OK, now, {code, ...}} | {LATE, now}; a code is OK, LOST
--            (another token, or none), GONE (no such job). Sent twice: GONE, or LOST if the id was
--            accepted anew.
if ARGV[2] ~= '0' and now > ARGV[2] + 0 then
  return { LATE, now }
end
local args, worker, n, ids, locks = ARGV, ARGV[1], (#ARGV - 3) / 2, {}, {}
for k = 1, n do
  local id = args[2 + 2 * k]
  ids[k], locks[k] = id, LOCK .. id
end
local holders = n > 0 and call('MGET', unpack(locks)) or {}
local m = call('HMGET', META, 'promised', 'max_running')
local promised = m[1] and m[1] + 0

local fence, token, codes -- one claim gives many jobs the same fence
local held = 0
for k = 1, n do
  if args[3 + 2 * k] ~= fence then
    fence = args[3 + 2 * k]
    token = worker .. ':' .. fence
  end
  if holders[k] ~= token then
    break
  end
  held = k
end
-- What `running` does not have was named before, or else is not as it should be.
if held < n or n > 0 and call('ZREM', RUNNING, unpack(ids)) < n then
  -- prelude: owned, open_writes, count
  local places, lost, unsure
  places, codes, lost, unsure = owned(worker, 4, 2, ARGV[3] + 0)
  n, ids, locks = #places, {}, {}
  for k = 1, n do
    ids[k] = ARGV[places[k]]
    locks[k] = LOCK .. ids[k]
  end
  if n > 0 then
    call('ZREM', RUNNING, unpack(ids))
  elseif lost + unsure > 0 then
    open_writes()
  end
  count('lost', lost)
  count('unsure', unsure)
end
if n == 0 then
  return { OK, now, codes }
end
call('HDEL', JOBS, unpack(ids))
call('DEL', unpack(locks))
if call('EXISTS', CRASHES, CANCELS) > 0 then
  call('HDEL', CRASHES, unpack(ids))
  call('HDEL', CANCELS, unpack(ids))
end
call('HINCRBY', META, 'done', n == 1 and '1' or n)
-- Without max_running no job that ends lets another one start sooner. So all is well while somebody
-- is to come for what waits, or nobody and nothing waits.
local waits = call('EXISTS', SCHEDULE) == 1
if m[2] or waits == not promised or promised and promised < now - BROKEN_MS then
  -- prelude: baton, read_meta
  baton(read_meta(), false)
end
return { OK, now, codes }
