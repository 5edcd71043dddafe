-- The processes that ran jobs of this worker died, and the worker lives: each job has one crash more, and goes back to
-- its place, with no attempt counted, and runs alone next. At its last crash it moves to `dead`. A job with a request to cancel is removed.
--
--  KEYS[1]   prefix      hf:{queue}:
--  ARGV[1]   worker      its id
--  ARGV[2]   not_after   ms on Redis's clock; 0: no limit
--  ARGV[3]   resent      how many of the first were sent before, without an answer
--  ARGV[4]   dead_max    bounds of `dead`: jobs
--  ARGV[5]   dead_age    and ms
--  ARGV[6]   poison      this many crashes, and a job is dead; a new checkpoint makes a crash the first
--  ARGV[7..] id, fence, due, error for each job, at most 1000; due: the time at which it was due before the
--            claim; the error is kept in the record
--  returns   {OK, now, {code, ...}} | {LATE, now}; a code is OK (put back), IS_DEAD, LOST, GONE.
--            Sent twice: LOST, and no crash is counted again.
--- @step "steps/guard.lua"
if came_late(ARGV[2]) then
  return { LATE, now }
end
local ERROR_MAX, WORDS_MAX = 4096, 256 -- bytes of the error of a dead job, and of its first line
local worker = ARGV[1]
local places, codes, lost, unsure = owned(worker, 7, 4, digits(ARGV[3], 1000))
local dead_max, dead_age = clamped(ARGV[4], math.huge), clamped(ARGV[5], DELAY_MAX)
local poison, dues = digits(ARGV[6], 4294967295), {}
for i = 7, #ARGV, 4 do
  dues[i] = clamped(ARGV[i + 2], TIME_MAX)
end

local function who()
  return worker .. ', its process died'
end

-- The first line tells how it ended; behind it stand the crashes, and then the other lines.
local function last_words(text, crashes)
  local line, rest = string.match(text, '^([^\n]*)\n?(.*)$')
  line = concat({ cut(line, WORDS_MAX), '; it crashed ', crashes })
  return rest == '' and line or line .. '\n' .. cut(rest, math.max(WORDS_MAX, ERROR_MAX - 1 - #line))
end

open_writes()
local uses, deaths, crashed = call('HGET', META, 'uses'), 0, 0
codes = codes or {}
for n = 1, (#ARGV - 6) / 4 do
  codes[n] = codes[n] or OK
end
for k = 1, #places do
  local i = places[k]
  local id, text = ARGV[i], ARGV[i + 3]
  if not cancelled(id, ARGV[i + 1]) then
    local record = call('HGET', JOBS, id) or ''
    local fatal = count_crash(id, poison, who)
    crashed = crashed + 1
    if fatal then
      bury(RUNNING, id, record, 'poison', last_words(text, fatal))
      codes[(i - 3) / 4], deaths = IS_DEAD, deaths + 1
    else
      run_over(id)
      call('ZREM', RUNNING, id)
      call('HSET', JOBS, id, rewrite(record, function(head)
        head.error, head.alone = text, ALONE -- which of the runs there was the cause?
      end))
      put_back(id, math.min(dues[i], now), uses, true) -- it was due, though this clock was set back
      call('DEL', LOCK .. id)
    end
  end
end
count('crashed', crashed)
count('lost', lost)
count('unsure', unsure)
if deaths > 0 then
  trim_dead(dead_max, dead_age, deaths)
end
if #places > 0 then
  wake(read_meta())
end
return { OK, now, codes }
