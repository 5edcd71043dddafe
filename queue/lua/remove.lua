-- Remove what a queue has left that holds nothing and has no worker, or only say what it holds.
--
--  KEYS[1]  prefix     hf:{queue}:
--  ARGV[1]  not_after  ms on Redis's clock; 0: no limit. Behind it a word for this request, or none
--  ARGV[2]  remove     1; 0: only look
--  returns  {OK, now, waiting, running, dead, kept, stray, schedules, workers, keys, used} | {LATE, now}.
--           waiting to kept: jobs; stray: records of jobs that are in no set; workers: those alive;
--           keys: unique keys whose window goes on after their jobs. If one of these is not 0, nothing is
--           removed. used: 1 if it ever had a job, or has a setting; 0 once it is removed. Sent twice:
--           with a word the first answer; without one it removes what came in between, if that holds
--           nothing either.
--
-- A queue that is divided into shards answers SHARDED. The client looks at all shards first. Then it asks
-- each to remove what it has left. A shard that is not empty refuses, and the emptied ones are usable:
-- each is as new. The queue's own keys stay, so it has the same shards if it is used again: a producer that
-- knows them may still put jobs there. The client tells the registry last (unregister). Keys that end by
-- themselves stay, too: with seen:<producer> a request that is sent again is still known. So does the last
-- fence: a queue that is used again gives no lower one, whatever Redis's clock does.
--- @step "steps/guard.lua"
local known = answered(ARGV[1])
if known then
  return known
end
local uses = call('HGET', META, 'uses')
--- @step "steps/sharded.lua"
local waiting = call('ZCARD', PARKED)
for _, set in ipairs(levels()) do
  waiting = waiting + call('ZCARD', set)
end
local running, dead = call('ZCARD', RUNNING), call('ZCARD', DEAD)
local kept = call('ZCOUNT', KEPT, '(' .. now, '+inf')
local stray = math.max(0, call('HLEN', JOBS) - waiting - running - dead)
local schedules, workers = call('HLEN', CRON), call('ZCOUNT', WORKERS, '(' .. now, '+inf')
local keys = call('ZCOUNT', WINDOWS, '(' .. now, '+inf')
local used = 0
for _, field in ipairs({ 'enqueued', 'file', 'on_dead' }) do
  used = call('HEXISTS', META, field) == 1 and 1 or used
end
for letter, on in pairs(uses_now(read_meta(), P)) do -- a pause and limits
  used = on and has_any(letter, DELAYS) and 1 or used
end
if ARGV[2] ~= '1' or waiting + running + dead + kept + stray + schedules + workers + keys > 0 then
  return { OK, now, waiting, running, dead, kept, stray, schedules, workers, keys, used }
end
open_writes()
local fence = call('HGET', META, 'fence')
local leftovers = { RUN_EVENTS }
for key in pairs(TYPE_OF_KEY) do
  leftovers[#leftovers + 1] = P .. key
end
call('DEL', unpack(leftovers))
if fence then
  call('HSET', META, 'fence', fence)
end
-- Its history, which would be that of the next queue of this name.
for _, kind in ipairs({ { '', MINUTE_MS, MINUTES_MS }, { 't', TEN_MS, TENS_MS } }) do
  local steps = {}
  for step = floor((now - kind[3]) / kind[2]) - 1, floor(now / kind[2]) do
    steps[#steps + 1] = PAST .. kind[1] .. string.format('%.0f', step)
  end
  call('DEL', unpack(steps))
end
return keep_answer({ OK, now, 0, 0, 0, 0, 0, 0, 0, 0, 0 })
