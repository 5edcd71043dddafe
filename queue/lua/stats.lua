-- A queue's figures.
--
--  KEYS[1]  prefix      hf:{queue}:
--  returns  {OK, now, paused, ready, delayed, running, dead, enqueued, done, failed, lost,
--           unsure, crashed, oldest ready (ms, 0 none), next due (ms, 0 none), max_running,
--           rate_limit, rate_per, workers alive, cancelled, deleted, done ones that are kept, their
--           bytes, expired, parked, replaced, healed, since when it is paused (ms, 0 not known), last
--           claim that gave jobs (ms, 0 none), jobs that died within an hour, refused ones that wait, schedules}.
--           What has expired and still waits counts as expired.
--- @step "steps/guard.lua"
local uses = call('HGET', META, 'uses')
--- @step "steps/sharded.lua"
local ready, delayed, first, after = 0, 0, nil, nil
-- What has expired and still waits: a refused job does so before its next time, too.
local late = has(uses, EXPIRY) and call('ZCOUNT', EXPIRES, '-inf', now) or 0
local gone = late > 0 and call('ZRANGEBYSCORE', EXPIRES, '-inf', now, 'LIMIT', 0, 1000) or {}
local is_gone = {}
for _, id in ipairs(gone) do
  is_gone[id] = true
end
local function least(a, b)
  return tonumber((not b or a and a + 0 < b + 0) and a or b or nil)
end
-- When the first of a set from this place on is due that has not expired.
local function first_from(set, place, n)
  local found = n > 0 and call('ZRANGE', set, place, place + math.min(n - 1, #gone), 'WITHSCORES') or {}
  for i = 1, #found, 2 do
    if not is_gone[found[i]] then
      return found[i + 1]
    end
  end
end
local parked = has(uses, UNIQUE_KEYS) and call('ZCARD', PARKED) or 0
for _, score in ipairs(parked > 0 and #gone > 0 and call('ZMSCORE', PARKED, unpack(gone)) or {}) do
  parked = parked - (score and 1 or 0)
end
for _, set in ipairs(levels_used(uses)) do
  local all = call('ZCARD', set)
  local due = all > 0 and call('ZCOUNT', set, '-inf', now) or 0
  ready, delayed = ready + due, delayed + all - due
  for _, score in ipairs(#gone > 0 and call('ZMSCORE', set, unpack(gone)) or {}) do
    if score and score + 0 <= now then
      ready = ready - 1
    elseif score then
      delayed = delayed - 1
    end
  end
  first, after = least(first, first_from(set, 0, due)), least(after, first_from(set, due, all - due))
end
ready = ready - (late - #gone)
local m = call('HMGET', META, 'paused', 'enqueued', 'done', 'failed', 'lost', 'unsure', 'crashed',
  'max_running', 'rate_limit', 'rate_per', 'cancelled', 'deleted', 'expired',
  'replaced', 'healed', 'paused_at', 'fence')
local keeps, dead = has(uses, KEEPING), call('ZCARD', DEAD)
local function number(value)
  return tonumber(value or 0)
end
return {
  OK, now, number(m[1]), ready, delayed, call('ZCARD', RUNNING),
  dead, number(m[2]), number(m[3]), number(m[4]), number(m[5]), number(m[6]),
  number(m[7]), time_of(first or 0), time_of(after or 0), number(m[8]), number(m[9]),
  number(m[10]), call('ZCOUNT', WORKERS, '(' .. now, '+inf'), number(m[11]), number(m[12]),
  keeps and call('ZCOUNT', KEPT, '(' .. now, '+inf') or 0, number(keeps and call('HGET', RESULTS, '')),
  number(m[13]) + late,
  parked, number(m[14]), number(m[15]), m[1] == '1' and number(m[16]) or 0,
  math.min(now, floor(number(m[17]) / 1000)), dead > 0 and call('ZCOUNT', DEAD, now - 3600000, '+inf') or 0,
  call('ZCARD', P .. 'refused'), has(uses, SCHEDULES) and call('HLEN', CRON) or 0,
}
