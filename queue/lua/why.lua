-- All that may keep a job from running, as it stands now.
--
--  KEYS[1]  prefix      hf:{queue}:
--  ARGV[1]  id
--  returns  {OK, now, set, score, line, payload bytes, token, lease, crashes, paused, before,
--           max_running, running, rate_limit, rate_per, next token, locked until,
--           cancelling, {holder, jobs, ...}, kept, follows} | {GONE, now}
--           set to crashes: as `job` answers, but the record's first line alone. before: jobs that
--           are due and come first, those of a higher level among them. next token: when the rate
--           lets the next one start; locked until: the end of a lock on a waiting job;
--           kept and follows: as `job`; each 0 if it does not apply. The holders of the first 1,000 that
--           run, at most 8, those with most jobs first. Sent twice: the same.
--- @step "steps/guard.lua"
local uses = call('HGET', META, 'uses')
--- @step "steps/sharded.lua"
local id = ARGV[1]
local place, score, kept, set = place_of(id, uses)
local record = place and call('HGET', place == 'done' and RESULTS or JOBS, id) or ''
if place == 'expired' then
  local at, dead = as_expired(id, record)
  place, score, record = dead and 'dead', at, dead
end
if not place then
  return { GONE, now }
end
local m = read_meta()
local token = call('GET', LOCK .. id) or ''
local nl, left = string.find(record, '\n', 1, true) or 0, lease_left(id)
local asked = place == 'running' and call('HGET', CANCELS, id) or '-'

local before = 0
if place == 'schedule' then
  before = math.min(call('ZRANK', set, id), call('ZCOUNT', set, '-inf', now))
  for _, higher in ipairs(levels()) do
    if higher == set then
      break
    end
    before = before + call('ZCOUNT', higher, '-inf', now)
  end
  before = before + call('ZCOUNT', RUNNING, 0, 0) -- those of dead holders are taken first
end

local function holders()
  local keys, held, names, told = call('ZRANGE', RUNNING, 0, 999), {}, {}, {}
  for i = 1, #keys do
    keys[i] = LOCK .. keys[i]
  end
  for _, lock in ipairs(#keys > 0 and call('MGET', unpack(keys)) or {}) do
    local name = lock and string.match(lock, '^(.*):%d+$')
    if name then
      names[#names + 1] = not held[name] and name or nil
      held[name] = (held[name] or 0) + 1
    end
  end
  table.sort(names, function(a, b)
    return held[a] > held[b] or held[a] == held[b] and a < b
  end)
  for i = 1, math.min(#names, 8) do
    told[2 * i - 1], told[2 * i] = names[i], held[names[i]]
  end
  return told
end

return {
  OK, now, place, time_of(score), string.sub(record, 1, nl), #record - nl, token, left,
  tonumber(string.match(call('HGET', CRASHES, id) or '', '^%d+')) or 0, m.paused and 1 or 0, before,
  m.max_running, call('ZCARD', RUNNING), m.rate, m.per, next_token(m),
  place == 'schedule' and left > 0 and now + left or 0,
  string.sub(token, -#asked - 1) == ':' .. asked and 1 or 0, holders(), kept,
  job_before(place, id, record),
}
