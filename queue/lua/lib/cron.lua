-- cron.lua - schedules, and their ticks.

-- Whether a schedule of a file makes no jobs, because no live worker names it.
local asker_said

-- A worker that has not said yet what its file names may name it.
local function may_name(said, id)
  return not said or string.find(said, ' @' .. id .. ' ', 1, true) ~= nil
end

-- asker: a worker, which is alive whatever this clock says; nil: none. Without any live worker all is as it
-- was: the one that names it may be about to start.
local function is_held(id, asker)
  if not call('ZSCORE', CRON_NAMED, id) then
    return false -- a command's
  end
  if asker and asker_said == nil then
    asker_said = call('HGET', HANDLES, asker)
  end
  if asker and may_name(asker_said, id) then
    return false
  end
  local all = live_said()
  for k = 1, #all do
    if may_name(all[k], id) then
      return false
    end
  end
  return asker ~= nil or #all > 0
end

local ROOM = 65536 -- of what is told
local BYTES = 8388608 -- of the definitions with their payloads: as many as one request of a worker has

local HELD_MS = 5000 -- before one that is held is looked at again

local NUMBERS = { 'from', 'tick', 'accepted', 'skipped', 'dropped', 'rev' } -- of a state

-- Whether the worker can read it, and cron_tick can decide on it: a program may have written something else.
local function is_readable(line, state)
  local read, head = pcall(cjson.decode, line)
  local known, s = pcall(cjson.decode, state)
  local good = read and type(head) == 'table' and type(head.job) == 'table' and type(head.job.type) == 'string'
    and (head.limit == nil or type(head.limit) == 'number')
    and known and type(s) == 'table' and type(s.gen) == 'string' and (s.job == nil or type(s.job) == 'string')
  for _, name in ipairs(good and NUMBERS or {}) do
    good = good and (s[name] == nil or type(s[name]) == 'number')
  end
  return good
end

-- Its ticks are judged when a file names it again, as after an outage. It is looked at again soon: this clock may
-- have been set, so that live workers seemed dead. True: it was not held before.
local function hold(id, text)
  local state = cjson.decode(text)
  open_writes()
  call('ZADD', CRON_NEXT, string.format('%d', now + HELD_MS), id)
  if state.held then
    return false
  end
  state.held = 1
  call('HSET', CRON_STATE, id, cjson.encode(state))
  return true
end

-- Appends id, next, definition, state, bytes of each of the first `max` schedules whose tick is due, as
-- far as there is room for them in the answer. The definition is the line of JSON without the payload;
-- bytes: of both. One that cannot be read is left for a minute, so it does not hide others. One that is held from
-- now on is told once, with a definition ''.
local function due_ticks(out, max, worker)
  local due = call('ZRANGEBYSCORE', CRON_NEXT, '-inf', stamp, 'WITHSCORES', 'LIMIT', 0, max)
  local room, bytes = ROOM, BYTES
  for i = 1, #due, 2 do
    local id = due[i]
    bytes = bytes - call('HSTRLEN', CRON, id)
    if room <= 0 or bytes < 0 and i > 1 then -- the first one is told, or it is not due any more
      break
    end
    local value, state = call('HGET', CRON, id), call('HGET', CRON_STATE, id)
    local line = value and string.match(value, '^([^\n]*)\n')
    if not line or not state then
      call('ZREM', CRON_NEXT, id) -- another hand has taken it out
    elseif not is_readable(line, state) then
      call('ZADD', CRON_NEXT, string.format('%d', now + 60000), id)
    elseif is_held(id, worker) then
      if hold(id, state) then
        local n = #out
        out[n + 1], out[n + 2], out[n + 3], out[n + 4], out[n + 5] = id, due[i + 1], '', '', 0
      end
    else
      local n = #out
      out[n + 1], out[n + 2], out[n + 3], out[n + 4], out[n + 5] = id, due[i + 1], line, state, #value
      room = room - #line - #state
    end
  end
  return out
end

-- Whether a tick is due that no other worker has taken. Then this one has a second to reckon what
-- comes of it (cron_due, cron_tick). If it dies, another one comes.
local function take_ticks()
  local at = next_tick()
  if not at or at > now then
    return false
  end
  open_writes()
  call('HSET', META, 'cron_by', string.format('%d', now + 1000))
  return true
end

-- nil: none is due, or another worker was told.
local function told_ticks(worker)
  return take_ticks() and due_ticks({}, 100, worker) or nil
end

local STEP_BACK_MS = 10800000 -- if this clock is set back by more, ticks are reckoned anew

-- Until when they are, of a schedule that is changed now. What was decided on before a smaller step back
-- does not repeat.
local function decided_until(from)
  return from and from > now and from <= now + STEP_BACK_MS and from or now
end

-- When a script has last decided on ticks. Only a later time is noted: after a step back of this clock,
-- sweep_future() must still see it.
local function note_decided()
  if now > tonumber(call('HGET', META, 'cron_high') or 0) then
    call('HSET', META, 'cron_high', stamp)
  end
end

-- The record of a job of a schedule: what its definition says of the job, and the tick (nil: none).
local function record_of(value, id, tick)
  local nl = string.find(value, '\n', 1, true)
  local head = cjson.decode(string.sub(value, 1, nl - 1)).job
  head.cron, head.scheduled = id, tick
  return cjson.encode(head) .. string.sub(value, nl)
end

-- Accepts jobs of one schedule: id, record, ...; times: due, id, ... with dues that may have come. They
-- have the same options.
local function accept(records, times)
  local m = call('HMGET', META, 'uses', 'high')
  local uses, high, big = m[1], tonumber(m[2] or 0), false
  local options, heads, homes = cjson.decode(string.match(records[2], '^[^\n]*')), {}, nil
  local first, upto, expiring = 1, #records / 2, options.start_within
  if options.priority then
    homes = { [options] = level_of(options.priority) }
  end
  for k = 1, upto do
    local due = times[2 * k - 1]
    if due > now and now < high then
      due = after_delay(due)
    end
    heads[k], times[2 * k - 1] = options, due <= now and stamp or string.format('%d', due)
    big = big or #records[2 * k] > 8192
  end
  --- @step "steps/put_jobs.lua"
  call('HINCRBY', META, 'enqueued', upto)
  if big and not has(uses, LARGE) then
    note_use(LARGE, true)
  end
  if now > high + HIGH_MS then
    call('HSET', META, 'high', stamp)
  end
end

-- Whether a live worker has said that its file names it.
local function is_named(id)
  local all = live_said()
  for k = 1, #all do
    if all[k] and may_name(all[k], id) then
      return true
    end
  end
  return false
end

-- A schedule of a file ends 10 minutes after the last live worker named it. If the end came while no
-- worker was there to see it (more than a minute ago), or this clock was set, it has 10 minutes more:
-- the worker that names it may be about to start.
local function sweep_named()
  local ended = call('ZRANGEBYSCORE', CRON_NAMED, '-inf', stamp, 'WITHSCORES', 'LIMIT', 0, 20)
  all_said = nil -- of another queue
  for i = 1, #ended, 2 do
    if ended[i + 1] + 0 < now - 60000 or is_named(ended[i]) then
      call('ZADD', CRON_NAMED, 'XX', string.format('%d', now + 600000), ended[i])
    else
      call('ZREM', CRON_NAMED, ended[i])
      call('ZREM', CRON_NEXT, ended[i])
      call('HDEL', CRON, ended[i])
      call('HDEL', CRON_STATE, ended[i])
    end
  end
  if #ended > 0 then
    note_use(SCHEDULES, call('EXISTS', CRON, CRON_NAMED) > 0)
  end
end

-- After a step back of this clock all next ticks are reckoned anew: they are due now, and the worker sees that
-- their last ticks are in the future (cron/ticks.c).
local function sweep_future()
  local high = tonumber(call('HGET', META, 'cron_high') or 0)
  if now >= high then
    return
  end
  local ids = call('ZRANGEBYSCORE', CRON_NEXT, '(' .. stamp, '+inf', 'LIMIT', 0, 1000)
  for _, id in ipairs(ids) do
    call('ZADD', CRON_NEXT, 'XX', stamp, id)
  end
  if #ids < 1000 then
    call('HSET', META, 'cron_high', stamp)
  end
end

local function sweep_cron()
  open_writes()
  sweep_named()
  sweep_future()
end
