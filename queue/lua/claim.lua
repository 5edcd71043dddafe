-- Take jobs: first those whose holder's lease is over (unless they are to be cancelled: then they
-- are removed), then those that are due.
--
--  KEYS[1]   prefix      hf:{queue}:
--  ARGV[1]   worker      its id, unique for each life of a process
--  ARGV[2]   number      of this claim; rises for each worker and queue
--  ARGV[3]   max         jobs, 1..1000, 200 of them from dead holders
--  ARGV[4]   lease       ms
--  ARGV[5]   not_after   ms on Redis's clock; 0: no limit
--  ARGV[6]   alive       ms for which the worker counts as alive; 0: no change
--  ARGV[7]   poison      crashes of its holders until a job is dead
--  ARGV[8]   dead_max    bounds of `dead`: jobs
--  ARGV[9]   dead_age    and ms
--  ARGV[10]  flags       letters: b (in doubt, after a reconnect: the promise is cleared), t (its
--            baton's time has come: so is a promise that has come; a later one is kept by
--            somebody), f (forgive: count no crash), j (Redis's clock jumped: no takeover for
--            one lease, and none that ended before is counted)
--  ARGV[11]  slots       how many can start at once: of a queue with a limit no more are taken
--  returns   {OK, now, fence, next, {id, due, ...}, {record, ...}, {id, crashes, ...}, {id, why,
--            ...}, more} | {LATE, now}. next: when it could succeed again, 0: not by time alone; why:
--            it was buried; more: 1 if a claim at once would find something even if every other
--            worker came before it. Token: `worker:fence`. Sent twice, the second takes other jobs.
local worker, max, lease = ARGV[1], tonumber(ARGV[3]), tonumber(ARGV[4])
if late(ARGV[5]) then
  return { LATE, now }
end
local MAX_BYTES, ROUNDS, TAKEOVERS = 8 * 1024 * 1024, 10, math.min(max, 200)
local flag = function(letter)
  return string.find(ARGV[10], letter, 1, true) ~= nil
end
local m = read_meta()
local fence = string.format('%.0f', math.max(m.fence + 1, time[1] * 1000000 + time[2]))
local token = worker .. ':' .. fence
-- Not `PX`: that counts from when the command runs, and a script of large records takes its time;
-- the lock would outlive its score.
local lease_end = string.format('%.0f', now + lease)
local jobs, records, marks, bytes, crashed, buried, gone = {}, {}, {}, 0, 0, {}, nil
open_writes()
if flag('j') then
  m.calm = now + lease
  call('HSET', META, 'calm', m.calm)
end

-- The names of workers that had not been heard of since the lease that ended was given, the last
-- ones, other than those that a mark names already. One counts as alive for its lease and 15 s.
local function gone_workers(mark, ended)
  gone = gone or call('ZREVRANGEBYSCORE', WORKERS, now + 15000, 0, 'WITHSCORES', 'LIMIT', 0, 50)
  local names = {}
  for i = 1, #gone, 2 do
    local id, in_time = gone[i], tonumber(gone[i + 1]) <= ended + 15000
    if #names == 3 then
      break
    elseif in_time and id ~= worker and not string.find(mark, id, 1, true) then
      names[#names + 1] = id
    end
  end
  return #names > 0 and concat(names, ' or ') or 'a worker'
end

local function put_away(set, id, record, reason, text)
  call('ZREM', set, id)
  bury(id, record, reason, text, false)
  buried[#buried + 2], buried[#buried + 1] = text, id
end

-- One crash more for this id, unless it is forgiven. True: it was the last one.
local function crash(id, ended, record)
  if flag('f') or ended < m.calm then
    return false
  end
  local n, story = string.match(call('HGET', CRASHES, id) or '0', '^(%d+)(.*)$')
  story = string.format('%s; %s, lease ended %.0f', story, gone_workers(story, ended), ended)
  n, crashed = n + 1, crashed + 1
  if n < tonumber(ARGV[7]) then
    call('HSET', CRASHES, id, n .. story)
    return false
  end
  put_away(RUNNING, id, record, 'poison', 'its holder died ' .. n .. ' times' .. story)
  return true
end

local function take(id, due, record)
  if call('SET', LOCK .. id, token, 'NX', 'PXAT', lease_end) then
    jobs[#jobs + 1], jobs[#jobs + 2] = id, due
    records[#records + 1] = record
    bytes = bytes + #record
    return true
  end
  return false
end

-- Held elsewhere: it waits in its set for the end of that lock.
local function wait_for_lock(set, id)
  local left = call('PTTL', LOCK .. id)
  if left < 0 then
    call('PEXPIRE', LOCK .. id, lease)
    left = lease
  end
  call('ZADD', set, now + left + 1, id)
end

if not m.paused and now >= m.calm then
  local over = call('ZRANGEBYSCORE', RUNNING, '-inf', now, 'WITHSCORES', 'LIMIT', 0, TAKEOVERS)
  for i = 1, #over, 2 do
    local id, ended = over[i], tonumber(over[i + 1])
    if bytes > MAX_BYTES then
      break
    end
    local record = call('HGET', JOBS, id)
    if call('EXISTS', LOCK .. id) == 1 then
      wait_for_lock(RUNNING, id)
    elseif not cancelled(id) then
      if not record then
        put_away(RUNNING, id, '', 'record', 'its record was missing')
      elseif not crash(id, ended, record) then
        take(id, over[i + 1], record)
      end
    end
  end
end
local free = max - #records
if m.max_running > 0 or m.rate > 0 then
  free = math.min(free, tonumber(ARGV[11]) - #records)
end
if m.max_running > 0 then
  free = math.min(free, m.max_running - call('ZCARD', RUNNING))
end
if m.rate > 0 then
  m.tokens, m.tokens_at = tokens(m), now
  free = math.min(free, floor(m.tokens))
end
local taken_over = #records
for _ = 1, m.paused and 0 or ROUNDS do
  local want = free - (#records - taken_over)
  if want <= 0 or bytes > MAX_BYTES then
    break
  end
  local due = call('ZRANGEBYSCORE', SCHEDULE, '-inf', now, 'WITHSCORES', 'LIMIT', 0, want)
  if #due == 0 then
    break
  end
  local ids, out, room = {}, {}, MAX_BYTES - bytes
  for i = 1, #due, 2 do
    if m.big then
      room = room - call('HSTRLEN', JOBS, due[i])
      if room < 0 and #ids + #records > 0 then
        bytes = MAX_BYTES + 1 -- no further round
        break
      end
    end
    ids[#ids + 1] = due[i]
  end
  local found = #ids > 0 and call('HMGET', JOBS, unpack(ids))
  for k = 1, #ids do
    if not found[k] then
      put_away(SCHEDULE, ids[k], '', 'record', 'its record was missing')
    elseif take(ids[k], due[2 * k], found[k]) then
      out[#out + 1] = ids[k]
    else
      wait_for_lock(SCHEDULE, ids[k])
    end
  end
  if #out == #due / 2 then
    call('ZREMRANGEBYRANK', SCHEDULE, 0, #out - 1)
  else
    each('ZREM', SCHEDULE, out)
  end
end
local n = #records
if n > 0 then
  local ends = {}
  for i = 1, 2 * n, 2 do
    ends[i], ends[i + 1] = lease_end, jobs[i]
  end
  call('ZADD', RUNNING, unpack(ends))
  call('SET', P .. 'last:' .. worker, ARGV[2] .. ' ' .. fence .. ' ' .. concat(jobs, ' '), 'PX',
    lease)
  call('HSET', META, 'fence', fence)
  if m.rate > 0 then
    m.tokens = m.tokens - (n - taken_over)
    call('HSET', META, 'tokens', string.format('%.6f', m.tokens), 'tokens_at', now)
  end
  if call('EXISTS', CRASHES) == 1 then
    for i = 1, 2 * n, 2 do
      local mark = call('HGET', CRASHES, jobs[i])
      if mark then
        marks[#marks + 1], marks[#marks + 2] = jobs[i], tonumber(string.match(mark, '^%d+'))
      end
    end
  end
end
if #buried > 0 then
  trim_dead(tonumber(ARGV[8]), tonumber(ARGV[9]))
end
if ARGV[6] ~= '0' then
  refresh_worker(worker, tonumber(ARGV[6]))
end
count('crashed', crashed)
local clear = flag('b') or (flag('t') and m.promised and m.promised <= now)
local at = baton(m, clear, n == 0 and now + 10 or now)
-- The baton goes from one worker to the next while something is due. Beyond what all the others
-- could take nobody need wait for it.
local more = 0
if at > 0 and at <= now then
  local others = call('ZCOUNT', WORKERS, now, '+inf') - 1
  local limited = m.max_running > 0 or m.rate > 0
  if others <= 0 or not limited and call('ZCOUNT', SCHEDULE, '-inf', now) > max * others then
    more = 1
  end
end
return { OK, now, fence, at, jobs, records, marks, buried, more }
