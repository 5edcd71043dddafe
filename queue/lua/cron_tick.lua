-- Decide on ticks that were due: accept their jobs, and set the next tick of each schedule. Lua knows no
-- time zones, so a worker reckons; a schedule that was changed meanwhile, or whose tick another worker
-- has decided on, is left alone.
--
--  KEYS[1]   prefix      hf:{queue}:
--  ARGV[1]   not_after   ms on Redis's clock; 0: no limit
--  ARGV[2]   claims      1: the worker's next request is a claim, which takes what is due by then, so
--            no other worker is woken for it; 0
--  ARGV[3..] id, gen, next, new_next, from, dropped, n for each schedule: gen and next as the worker was
--            told; its next tick from now on, ms, '': none; all ticks until `from` are decided on;
--            of them this many missed ones are dropped; then n times: id of a new job, tick, due, ms;
--            at most 1000 in all
--  returns   {OK, now, more, {code, ...}} | {LATE, now}; more 1: others are due by now. A code of each
--            schedule: OK, LOST (nothing was changed), EXISTS (an id was not new, nothing was changed).
--            Sent twice: LOST.
--- @step "steps/guard.lua"
if came_late(ARGV[1]) then
  return { LATE, now }
end
local uses = call('HGET', META, 'uses')
--- @step "steps/sharded.lua"

-- Where the job of an earlier tick waits, is retried or runs. One whose time is over is gone.
local function set_of(id)
  if is_late(id) then
    return nil
  end
  for _, set in ipairs({ RUNNING, unpack(levels()) }) do
    if call('ZSCORE', set, id) then
      return set
    end
  end
end

-- Makes room for the next job: false if it may not come.
local function overlap(how, id)
  local set = how ~= 'allow' and id and set_of(id)
  if set and how == 'cancel' then
    if set == RUNNING then
      ask_to_cancel(id)
    else
      leave('cancelled', { id }, set)
    end
  end
  return not set or how == 'cancel'
end

local function tick(at, id, state)
  local value = call('HGET', CRON, id)
  local head, next, n = cjson.decode(string.match(value, '^[^\n]*')), ARGV[at + 3], ARGV[at + 6] + 0
  local records, times = {}, {}
  local function flush()
    if #records > 0 then
      accept(records, times)
    end
    records, times = {}, {}
  end
  state.held = nil
  call('HSET', CRON_STATE, id, cjson.encode(state)) -- first of all: a full Redis refuses it
  for k = at + 7, at + 4 + 3 * n, 3 do
    if head.overlap ~= 'allow' then
      flush() -- the next one may overlap with this job
    end
    if head.limit and (state.accepted or 0) >= head.limit then
      break
    elseif overlap(head.overlap, state.job) then
      state.job, state.tick = ARGV[k], ARGV[k + 1] + 0
      state.accepted = (state.accepted or 0) + 1
      local j = #records
      records[j + 1], records[j + 2] = state.job, record_of(value, id, state.tick)
      times[j + 1], times[j + 2] = ARGV[k + 2] + 0, state.job
    else
      state.skipped = (state.skipped or 0) + 1
    end
  end
  flush()
  state.from, state.dropped = ARGV[at + 4] + 0, (state.dropped or 0) + ARGV[at + 5]
  call('HSET', CRON_STATE, id, cjson.encode(state))
  if next == '' or head.limit and (state.accepted or 0) >= head.limit then
    call('ZREM', CRON_NEXT, id)
  else
    call('ZADD', CRON_NEXT, next, id)
  end
end

local codes, at, decided = {}, 3, false
while at + 6 <= #ARGV do
  local id, n, code = ARGV[at], ARGV[at + 6] + 0, LOST
  local text = call('HGET', CRON_STATE, id)
  local state = text and cjson.decode(text)
  if state and state.gen == ARGV[at + 1] and call('ZSCORE', CRON_NEXT, id) == ARGV[at + 2] then
    code = OK
    for k = at + 7, at + 4 + 3 * n, 3 do
      code = call('HEXISTS', JOBS, ARGV[k]) == 1 and EXISTS or code
    end
  end
  if code == OK then
    tick(at, id, state)
    decided = true
  end
  codes[#codes + 1], at = code, at + 7 + 3 * n
end
local more = call('ZCOUNT', CRON_NEXT, '-inf', stamp) > 0
if decided then
  note_decided()
  call('HSET', META, 'cron_by', more and string.format('%d', now + 1000) or '0')
  local m = read_meta()
  if ARGV[2] == '1' then
    m.next_wake = now
    call('HSET', META, 'next_wake', stamp)
  end
  wake(m)
end
return { OK, now, more and 1 or 0, codes }
