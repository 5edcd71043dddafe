-- Divide a queue into shards, before it is used, or tell its shards. A divided queue keeps its number.
--
--  KEYS[1]  prefix      hf:{queue}:
--  ARGV[1]  not_after   ms on Redis's clock; 0: no limit
--  ARGV[2]  shards      `<number> <tag> <tag> ...`; '' : only tell
--  returns  {OK, now, shards, why} | {LATE, now}; shards: as they are now, '' if there are none. why:
--           it was not divided because it has `jobs`, is `paused`, or has `limits` that no file
--           said; else ''. Sent twice: the same.
--- @step "steps/guard.lua"
if came_late(ARGV[1]) then
  return { LATE, now }
end
local shards = call('HGET', META, 'shards')
if shards or ARGV[2] == '' then
  return { OK, now, shards or '', '' }
end
local m, file = read_meta(), call('HGET', META, 'file')
local limits = string.format('%d %d %d', m.max_running, m.rate, m.per)
local why = call('EXISTS', SCHEDULE, RUNNING, DEAD, JOBS, P .. 'cron') > 0 and 'jobs' or m.paused and 'paused'
  or limits ~= '0 0 0' and limits ~= file and 'limits'
if why then
  return { OK, now, '', why }
end
open_writes()
call('DEL', P .. 'wake')
call('HDEL', META, 'max_running', 'rate_limit', 'rate_per', 'tokens', 'tokens_at', 'file', 'next_wake')
call('HSET', META, 'shards', ARGV[2], 'uses', 's')
-- An older version does not know the letter, and would put jobs here, where no worker claims them. With this
-- its request fails, and changes nothing.
call('SET', JOBS, 'the queue is divided into shards')
return { OK, now, ARGV[2], '' }
