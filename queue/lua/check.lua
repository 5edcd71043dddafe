-- For each of a worker's queues: report that the worker is alive, replace a wake-up that no worker
-- keeps, repair `uses`, and share the clock samples of this worker's machine.
--
--  KEYS[1..] prefixes    hf:{queue}: of queues on one server
--  ARGV[1]   worker      its id
--  ARGV[2]   alive       ms for which it counts as alive; 0: no change
--  ARGV[3]   give_back   1: it had the batons and cannot use them: they are put back
--  ARGV[4]   lease       its length, ms
--  ARGV[5]   least       ms on Redis's clock: it is not known to have been set before that of late;
--            0: not known
--  ARGV[6]   machine     a name of this start of its machine; '': nothing is shared
--  ARGV[7]   learned     its samples of this clock; '': none yet
--  ARGV[8]   keep        ms for which they are useful
--  ARGV[9..] over        of each queue: undated leases up to this number are over; 0: none
--  returns   {OK, now, empty, {doubt, ...}, longest, learned, {undated, ...}, {ticks, ...},
--            {unknown, ...}}; empty 1: nothing is
--            scheduled or running in any of them. doubt, of each: from then on a lease is over and
--            its next wake-up counts as missed; 0: no lease ends soon; -1: it is divided into shards,
--            and has no jobs. longest: ms, the longest
--            lease of any of them; learned: what another worker of this machine has learned, '' if
--            none has. undated, of each: all undated leases have this number or a lower one; 0:
--            there is none. ticks 1: ticks of schedules are due that this worker has to reckon. unknown 1: the
--            queue does not know what this worker has told it (present.lua): its data is new. A queue that cannot be checked (a key of another type) is left out: its
--            doubt is 0, and it is not empty; the answer is its error only if that is so of all.
--            Sent twice: the same.
--- @include "lib/guard.lua"
--- @include "lib/keys.lua"
--- @include "lib/key_lock.lua"
--- @include "lib/use.lua"
--- @include "lib/open_writes.lua"
--- @include "lib/refresh_worker.lua"
--- @include "lib/key_handles.lua"
--- @include "lib/longest_lease.lua"
--- @include "lib/bounds.lua"
--- @include "lib/read_meta.lua"
--- @include "lib/uses_now.lua"
--- @include "lib/keeping.lua"
--- @include "lib/wake.lua"
local empty, checked, fault, longest, learned = 1, 0, nil, ARGV[4] + 0, ''
local doubts, numbers, ticks, unknown = {}, {}, {}, {}

-- This clock does not tell when leases of two kinds are over. A lease that ends later than any lease can
-- last was given before this clock was set back. (A tenth more than any lease is none of these, since a
-- holder knows this clock a little ahead at times.) A marked lease is of a holder that is new to this clock;
-- it is looked for only if the first lease is one and was not renewed after a third of it, as a holder that
-- lives does. Such leases become undated: their scores are beyond all times, by a number that rises with
-- each check that finds some. A renewal dates a lease again. So a lease is over that is still undated, with
-- a number that a worker was told a whole lease ago by its own clock: `over`. It gets an end that has
-- come, and that the worker vouches for; its lock stays until then. Returns the number that covers all, 0:
-- there is none.
local function judge_undated(over)
  local first = call('ZRANGE', RUNNING, 0, 0, 'WITHSCORES')[2]
  local last = first and call('ZRANGE', RUNNING, -1, -1, 'WITHSCORES')[2]
  local latest, renewed = now + longest + floor(longest / 10), now + floor(longest * 2 / 3)
  local unrenewed = first and first % 2 ~= 0 and first + 0 < renewed
  if not last or last + 0 <= latest and not unrenewed then
    return 0
  end
  --- @include "lib/undate.lua"
  open_writes()
  local number = tonumber(call('HGET', META, 'undated') or 0)
  local ended = ARGV[5] == '0' and now or math.min(now, ARGV[5] + 0)
  ended = string.format('%d', ended - ended % 2) -- an odd one would be marked
  for _, id in ipairs(leases(undated(0), undated(math.min(over, number)))) do
    call('ZADD', RUNNING, 'XX', ended, id)
    call('DEL', LOCK .. id)
  end
  local found = undate(leases(undated(number), '+inf'), number + 1)
  found = undate(leases(string.format('%d', latest), undated(0)), number + 1) or found
  if unrenewed then
    local lock_end = string.format('%d', now + 2 * longest)
    found = undate(marked_leases(string.format('%d', renewed)), number + 1, lock_end) or found
  end
  number = found and call('HINCRBY', META, 'undated', 1) or number
  return #leases(undated(0), undated(number)) > 0 and number or 0
end

local function share(prefix)
  local key = prefix .. 'clock:' .. ARGV[6]
  if learned == '' then
    learned = call('GET', key) or ''
  end
  if ARGV[7] ~= '' then
    call('SET', key, ARGV[7], 'PX', ARGV[8])
  end
end

-- An older version, or a person, may have set a field without its letter. A worker checks a queue
-- before its first claim, so this holds from then on.
local function mend_uses(m, prefix)
  for letter, used in pairs(uses_now(m, prefix)) do
    if used ~= (string.find(m.uses, letter, 1, true) ~= nil) then
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
  if ARGV[6] ~= '' then
    share(KEYS[i])
  end
  if ARGV[2] ~= '0' then
    refresh_worker(ARGV[1], tonumber(ARGV[2]), ARGV[4])
  end
  unknown[i] = call('PEXPIRE', HANDLES, HANDLES_MS) == 1 and 1 - call('HEXISTS', HANDLES, ARGV[1]) or 1
  longest = math.max(longest, longest_lease())
  numbers[i] = judge_undated(tonumber(ARGV[8 + i] or 0))
  local m = read_meta()
  if string.find(m.uses, 'k', 1, true) then
    forget_done(KEYS[i], #KEYS - i + 1)
  end
  if string.find(m.uses, 'u', 1, true) then
    --- @include "lib/unique_windows.lua"
    end_windows(1000)
  end
  mend_uses(m, KEYS[i])
  if string.find(m.uses, 'c', 1, true) then
    --- @include "lib/take_ticks.lua"
    --- @include "lib/sweep_cron.lua"
    sweep_cron()
    ticks[i] = not m.paused and take_ticks() and 1 or 0
  end
  local _, doubt = wake(m, ARGV[3] == '1')
  doubts[i] = string.find(m.uses, 's', 1, true) and -1 or doubt
  return call('EXISTS', SCHEDULE, RUNNING, SCHEDULE .. ':h', SCHEDULE .. ':l')
end
for i = 1, #KEYS do
  use(KEYS[i])
  doubts[i], numbers[i], ticks[i], unknown[i] = 0, 0, 0, 0
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
return { OK, now, empty, doubts, longest, learned, numbers, ticks, unknown }
