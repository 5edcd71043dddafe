-- Jobs are done: remove those that this worker holds.
--
--  KEYS[1]   prefix      hf:{queue}:
--  ARGV[1]   worker      its id
--  ARGV[2]   not_after   ms on Redis's clock; 0: no limit
--  ARGV[3]   resent      how many of the first were sent before, without an answer; ` leaving` behind it:
--            a job needs something when it leaves
--  ARGV[4]   fences      how many there are
--  ARGV[5..] fence, jobs for each of them: this many have it; then the id of each job, in this order,
--            1 to 1000; with ` leaving`, then what each needs, as its worker has read it (steps/leaving.lua)
--  returns   {OK, now} (all done) | {OK, now, {code, ...}} | {LATE, now}; a code is OK, LOST
--            (another token, or none), GONE (no such job). Sent twice: GONE, or LOST if the id was
--            accepted again.
if ARGV[2] ~= '0' and now > ARGV[2] + 0 then
  return { LATE, now }
end
local args, worker, from, locks, leaving = ARGV, ARGV[1], 5 + 2 * ARGV[4], {}, nil -- where the ids begin
local n, resent = #args - from + 1, ARGV[3]
if resent ~= '0' and string.find(resent, ' leaving', 1, true) then
  n, resent = n / 2, string.match(resent, '^%d+')
  args, leaving = { unpack(args, 1, from + n - 1) }, { unpack(args, from + n) }
end
for k = 1, n do
  locks[k] = LOCK .. args[from + k - 1]
end
local holders = call('MGET', P, unpack(locks)) -- P: steps/guard.lua
local m = call('HMGET', META, 'next_wake', 'uses')
local next_wake, uses = m[1] and m[1] + 0, m[2]

-- How many, from the first on, this worker holds.
local held, to, run, ids, codes = 0, 0, 5, args, nil
repeat
  local token = worker .. ':' .. args[run] -- one claim gives many jobs the same
  to, run = to + args[run + 1], run + 2
  while held < to and holders[held + 2] == token do
    held = held + 1
  end
until held < to or run == from
-- What `running` does not have was named before, or else is not as it should be.
if held < n or call('ZREM', RUNNING, unpack(ids, from)) < n then
  local jobs, i, left, places, lost, unsure = {}, 3, 0, nil, nil, nil
  for k = 1, n do
    while left <= 0 do
      i = i + 2
      left = assert(i < from and args[i + 1], 'fences for fewer jobs than there are') + 0
    end
    jobs[2 * k - 1], jobs[2 * k], left = args[from + k - 1], args[i], left - 1
  end
  places, codes, lost, unsure = owned(worker, 1, 2, resent + 0, jobs)
  n, from, ids, locks = #places, 1, {}, {}
  local needs = leaving
  leaving = needs and {}
  for k = 1, n do
    ids[k] = jobs[places[k]]
    locks[k] = LOCK .. ids[k]
    if needs then
      leaving[k] = needs[(places[k] + 1) / 2]
    end
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
local how, set, marked, expiring = 'done', nil, has(uses, MARKS), false
local unparked
-- As leave(), with what is known already: the path of every job.
--- @step "steps/leaving.lua"

-- The wake rule. Without FREES no job that ends lets another one start sooner. So nothing is
-- missing while a worker will come for the waiting jobs, or none comes and no job waits.
local waits = call('EXISTS', SCHEDULE) == 1
if not waits and has(uses, LEVELS) then
  waits = call('EXISTS', unpack(levels(true))) > 0
end
if unparked or waits == not next_wake or next_wake and next_wake < now - BROKEN_MS
  or has_any(uses, FREES) then
  wake(read_meta())
end
return { OK, now, codes }
