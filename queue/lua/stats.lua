-- A queue's figures.
--
--  KEYS[1]  prefix      hf:{queue}:
--  returns  {OK, now, paused, ready, delayed, running, dead, enqueued, done, failed, lost,
--           unsure, crashed, oldest ready (ms, 0 none), next due (ms, 0 none), max_running,
--           rate_limit, rate_per, workers alive, cancelled, deleted, done ones that are kept, and
--           their bytes, expired}. What has expired and still waits counts as expired.
--- @include "lib/guard.lua"
--- @include "lib/keys.lua"
--- @include "lib/key_dead.lua"
--- @include "lib/key_workers.lua"
--- @include "lib/time_of.lua"
--- @include "lib/levels.lua"
--- @include "lib/key_kept.lua"
--- @include "lib/key_expires.lua"
local uses = call('HGET', META, 'uses')
--- @step "lib/sharded.lua"
local ready, waiting, first, after = 0, 0, nil, nil
local function least(a, b)
  return tonumber((not b or a and a + 0 < b + 0) and a or b or nil)
end
for _, set in ipairs(levels()) do
  local head = call('ZRANGE', set, 0, 0, 'WITHSCORES')[2]
  local later = call('ZRANGEBYSCORE', set, '(' .. now, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2]
  ready, waiting = ready + call('ZCOUNT', set, '-inf', now), waiting + call('ZCARD', set)
  first, after = least(first, head), least(after, later)
end
local m = call('HMGET', META, 'paused', 'enqueued', 'done', 'failed', 'lost', 'unsure', 'crashed',
  'max_running', 'rate_limit', 'rate_per', 'cancelled', 'deleted', 'expired')
local late = call('ZCOUNT', EXPIRES, '-inf', now)
local keeps = uses and string.find(uses, 'k', 1, true)
local function number(value)
  return tonumber(value or 0)
end
return {
  OK, now, number(m[1]), ready - late, waiting - ready, call('ZCARD', RUNNING),
  call('ZCARD', DEAD), number(m[2]), number(m[3]), number(m[4]), number(m[5]), number(m[6]),
  number(m[7]), ready > late and time_of(first) or 0, time_of(after or 0), number(m[8]), number(m[9]),
  number(m[10]), call('ZCOUNT', WORKERS, '(' .. now, '+inf'), number(m[11]), number(m[12]),
  keeps and call('ZCOUNT', KEPT, '(' .. now, '+inf') or 0, number(keeps and call('HGET', RESULTS, '')),
  number(m[13]) + late,
}
