-- Pause, resume, remove or run a schedule.
--
--  KEYS[1]  prefix      hf:{queue}:
--  ARGV[1]  not_after   ms on Redis's clock; 0: no limit. Behind it a word for this request, or none
--  ARGV[2]  id
--  ARGV[3]  what        `pause`; `resume`: its ticks meanwhile are dropped; `remove`; `run`: a job now,
--           which has no part in the schedule
--  ARGV[4]  with        resume: its next tick, ms, '': none; run: the id of the new job
--  returns  {OK, now} | {GONE, now} (no such schedule) | {LATE, now}. Sent twice: the same; without a
--           word GONE once it is removed.
--- @step "steps/guard.lua"
local known = answered(ARGV[1])
if known then
  return known
end
local uses = call('HGET', META, 'uses')
--- @step "steps/sharded.lua"
local id, what, with = ARGV[2], ARGV[3], ARGV[4]
local value, state = call('HGET', CRON, id), cjson.decode(call('HGET', CRON_STATE, id) or '{}')
if not value then
  return { GONE, now }
end
if what == 'run' then
  if state.ran ~= with and call('HEXISTS', JOBS, with) == 0 then -- not sent before: it may be done by now
    state.ran = with
    call('HSET', CRON_STATE, id, cjson.encode(state))
    accept({ with, record_of(value, id) }, { now, with })
  end
elseif what == 'remove' then
  open_writes()
  call('ZREM', CRON_NEXT, id)
  call('HDEL', CRON, id)
  -- While a file names it, also one that a command has taken it over from, that file must change before
  -- it comes back.
  if state.file then
    call('HSET', CRON_STATE, id, cjson.encode({ file = state.file, rev = state.rev, removed = 1 }))
    call('ZADD', CRON_NAMED, 'NX', string.format('%d', now + 600000), id)
  else
    call('HDEL', CRON_STATE, id)
  end
  note_use(SCHEDULES, call('EXISTS', CRON, CRON_NAMED) > 0)
elseif what == 'pause' then
  open_writes()
  state.paused = 1
  call('HSET', CRON_STATE, id, cjson.encode(state))
  call('ZREM', CRON_NEXT, id)
elseif state.paused then
  open_writes()
  state.paused, state.held, state.from, state.gen = nil, nil, decided_until(state.from), time[1] .. micros
  call('HSET', CRON_STATE, id, cjson.encode(state))
  if with ~= '' then
    call('ZADD', CRON_NEXT, with, id)
  end
  note_decided()
end
wake(read_meta())
return keep_answer({ OK, now })
