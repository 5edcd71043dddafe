-- For each of a worker's queues: report that the worker is alive, replace a wake-up that no worker
-- keeps, repair `uses`, read the clock, find the leases that are over, and let jobs that were refused go to the front.
--
--  KEYS[1..] prefixes    hf:{queue}: of queues on one server
--  ARGV[1]   worker      its id
--  ARGV[2]   alive       ms for which it counts as alive; 0: no change
--  ARGV[3]   give_back   1: it had the batons and cannot use them: they are put back
--  ARGV[4]   lease       its length, ms
--  ARGV[5]   machine     the worker's, at most 96 bytes
--  ARGV[6]   boot        ms on that machine's boot clock, before it was sent
--  ARGV[7..] shown       of each queue: what it has read last (read.lua)
--  returns   {OK, now, empty, {divided, ...}, shortest, {ticks, ...}, {unknown, ...}, {{clock, number, after},
--            ...}}; empty 1: nothing is scheduled or running in any of them. divided 1: into shards, so
--            it has no jobs. shortest: ms, the shortest lease of any of them. ticks 1: ticks of schedules are
--            due that this worker has to reckon. unknown 1: the queue does not know what this worker has told it
--            (present.lua): its data is new. Of each a reading (read.lua). A queue that cannot be checked
--            (a key of another type) is left out: it is not empty, and has no reading; the answer is its
--            error only if that is so of all. Sent twice: the same.
--- @step "steps/guard.lua"
local empty, checked, fault, shortest = 1, 0, nil, ARGV[4] + 0
local divided, ticks, unknown, readings = {}, {}, {}, {}

-- An older version, or a person, may have set a field without its letter. A worker checks a queue
-- before its first claim, so this holds from then on.
local function mend_uses(m, prefix)
  for letter, used in pairs(uses_now(m, prefix)) do
    if used ~= (has(m.uses, letter) ~= nil) then
      note_use(letter, used)
    end
  end
end

-- Those whose time is over, if no job that ends comes to it; more of them by later checks. Each of the queues that
-- are left has its share.
local may_forget = FORGET_MAX

local function forget_done(prefix, left)
  DONE, KEPT, RESULTS = prefix .. 'done', prefix .. 'kept', prefix .. 'results'
  may_forget = may_forget - forget_over(math.ceil(may_forget / left))
end

local function check(i)
  open_writes()
  if ARGV[2] ~= '0' then
    refresh_worker(ARGV[1], tonumber(ARGV[2]), ARGV[4])
  end
  unknown[i] = call('PEXPIRE', HANDLES, HANDLES_MS) == 1 and 1 - call('HEXISTS', HANDLES, ARGV[1]) or 1
  local reading, over = read_clock(ARGV[5], ARGV[6] + 0, ARGV[6 + i])
  readings[i], shortest = reading, math.min(shortest, shortest_lease())
  local m = read_meta()
  if has(m.uses, KEEPING) then
    forget_done(KEYS[i], #KEYS - i + 1)
  end
  if has(m.uses, UNIQUE_KEYS) then
    end_windows(1000)
  end
  mend_uses(m, KEYS[i])
  to_front()
  if has(m.uses, SCHEDULES) then
    sweep_cron()
    ticks[i] = not m.paused and take_ticks() and 1 or 0
  end
  wake(m, ARGV[3] == '1' or over > 0)
  divided[i] = has(m.uses, SHARDS) and 1 or 0
  return call('EXISTS', RUNNING, unpack(levels()))
end
for i = 1, #KEYS do
  use(KEYS[i])
  divided[i], ticks[i], unknown[i], readings[i] = 0, 0, 0, { 0, 0, 0 }
  local done, found = pcall(check, i)
  if done then
    checked = checked + 1
  else
    fault = found
  end
  if not done or found > 0 then
    empty = 0
  end
end
-- With its class in front. Redis 7 gives the text of what was caught, 6.2 puts `@user_script: 12: -`
-- before it, and plain Lua would give the table.
if checked == 0 and fault then
  local text = type(fault) == 'table' and fault.err or fault
  text = string.gsub(text, '^@user_script: %d+: %-', '')
  return { err = string.find(text, '^%u+ ') and text or 'ERR ' .. text }
end
return { OK, now, empty, divided, shortest, ticks, unknown, readings }
