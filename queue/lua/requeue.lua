-- Jobs run sooner: dead ones as if they were new, with no attempt and no crash counted; those that
-- wait for their time or their backoff, without waiting.
-- Stable since 0.2: clients of all languages call it (docs/keys.md).
--
--  KEYS[1]   prefix      hf:{queue}:
--  ARGV[1]   not_after   ms on Redis's clock; 0: no limit. Behind it a word for this request, or none
--  ARGV[2]   died        0: waiting and dead jobs; else only dead jobs that died until then, ms
--  ARGV[3]   first       when the first of them becomes due, ms; 0: now
--  ARGV[4]   rate        how many become due per second, from then on; 0: all at once
--  ARGV[5]   place       of the first of them in the resulting line, from 0
--  ARGV[6..] id of each job, at most 200
--  returns   {OK, now, {code, ...}} | {LATE, now}; a code is OK, GONE, RUNS, EXISTS (it is dead, and
--            another job holds its unique key), -14 (it is parked). Sent twice: the same; without a
--            word GONE where died is given.
--- @step "steps/guard.lua"
local known = answered(ARGV[1])
if known then
  return known
end
local uses = call('HGET', META, 'uses')
--- @step "steps/sharded.lua"
local died, first = digits(ARGV[2], TIME_MAX), digits(ARGV[3], TIME_MAX)
local rate, place = digits(ARGV[4], DELAY_MAX), digits(ARGV[5], DELAY_MAX)
local codes, changed = {}, false

-- It may expire anew, from the time at which it is due now. False: another job holds its unique key.
local function put(id, due)
  local home, by
  local record = call('HGET', JOBS, id) or ''
  local key, options = key_of(record)
  if key and not take_again(id, key, options) then
    return false
  end
  record = rewrite(record, function(head)
    home, by = level_of(head.priority), start_by(head.start_within, due)
    head.attempts, head.history, head.reason, head.died = nil, nil, nil, nil
    head.refused, head.unhandled, head.alone = nil, nil, nil
    head.start_by = tonumber(by)
  end)
  if home ~= SCHEDULE then
    note_use(LEVELS, true)
  end
  call('ZREM', DEAD, id)
  call('HSET', JOBS, id, record)
  call('ZADD', home, due, id)
  if by then
    call('ZADD', EXPIRES, by, id)
    note_use(EXPIRY, true)
  end
  return true
end

-- It waits no longer; what may expire has its whole time from now on.
local function hasten(set, id)
  call('ZADD', set, now, id)
  if call('ZSCORE', EXPIRES, id) then
    local by
    call('HSET', JOBS, id, rewrite(call('HGET', JOBS, id) or '', function(head)
      by = start_by(head.start_within, now)
      head.start_by = tonumber(by)
    end))
    call('ZADD', EXPIRES, by or '-inf', id)
  end
end

open_writes()
for i = 6, #ARGV do
  local id, code, due = ARGV[i], GONE, first
  changed = died == 0 and expire_late(id) or changed -- it may be dead now
  local score = call('ZSCORE', DEAD, id)
  if rate > 0 then
    due = math.min(TIME_MAX, due + floor((place + i - 6) * 1000 / rate))
  end
  if score and (died == 0 or tonumber(score) <= died) then
    changed = true -- a key may have been healed
    code = put(id, due > now and after_delay(due) or now) and OK or EXISTS
  elseif died == 0 and not score then
    local set
    set, score = waits_in(id)
    if set then
      code = OK
      if tonumber(score) > now then
        changed = true
        hasten(set, id)
      end
    elseif call('ZSCORE', RUNNING, id) then
      code = RUNS
    elseif call('ZSCORE', PARKED, id) then
      code = WAITS_FOR
    end
  end
  codes[#codes + 1] = code
end
if changed then
  wake(read_meta())
end
local reply = { OK, now, codes }
return changed and keep_answer(reply) or reply
