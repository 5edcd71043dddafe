-- conflicts.lua - a job meets the one that holds its unique key.

-- Where the holder is: EXISTS (it waits, in that set), RUNS, IS_DEAD; nil: it does not hold the key.
local function holds(e)
  local set = waits_in(e.id)
  if set then
    return EXISTS, set
  elseif call('ZSCORE', RUNNING, e.id) then
    return e.keeps ~= 's' and RUNS or nil
  elseif call('ZSCORE', DEAD, e.id) then
    return e.keeps == 'd' and IS_DEAD or nil
  end
end

-- The text and the entry of a key, and whether its holder has ended: only the window is left then, and
-- another job may have the id of the holder meanwhile.
local function read_key(key)
  local value = call('HGET', UNIQUE, key)
  local e = entry_of(value)
  return value, e, e and e.window > 0 and call('ZSCORE', WINDOWS, key)
end

-- The entry of a key that is taken, and the state of its holder; GONE: only its window holds it. A key
-- whose holder has been lost is healed, and counted.
local function holder_of(key)
  for _ = 1, 3 do -- freed, the key may belong to a parked job, and this one be gone too
    local value, e, ended = read_key(key)
    local state, set = nil, nil
    if e and e.parked ~= '' and expire_late(e.parked) then
      value, e, ended = read_key(key)
    end
    if e and not ended and expire_late(e.id) then
      value, e, ended = read_key(key)
    end
    if e and not ended then
      state, set = holds(e)
    end
    if state then
      return e, state, set
    elseif e and e.window > now then
      return e, GONE
    elseif not value then
      return nil
    end
    if not ended then
      count('healed', 1)
    end
    if e then
      free_key(key, e, true)
    else
      call('HDEL', UNIQUE, key)
    end
  end
end

-- What the answer says of each job that met another one: place, how, id, state. how: `skipped` and
-- `replaced`: that job stands for it; `parked`: it waits for that job. state of that job: EXISTS (it
-- waits), RUNS, IS_DEAD, WAITS_FOR, or GONE (it has ended, and its window has not).
local conflicts_met = {}

local function met(k, how, id, state)
  local n = #conflicts_met
  conflicts_met[n + 1], conflicts_met[n + 2] = k, how
  conflicts_met[n + 3], conflicts_met[n + 4] = id, state
  return how == 'parked' and OK or EXISTS
end

-- Whether a holder that died in this script has taken this id for the job about its death.
local function is_taken(id)
  return string.find(id, '%.dead[%d%.]*$') and call('HGET', JOBS, id)
end

-- When a job is due: as it says, or as its debounce says, counted from the first of its jobs.
local function due_of(head, due, first)
  return head.debounce and after_delay(math.min(now + head.debounce, first + head.max_wait)) or due
end

-- The waiting job of this id gets another record, and starts anew.
local function replace(e, set, key, job)
  local head, first = job.head, math.min(e.first > 0 and e.first or now, now)
  local home = level_of(head.priority)
  local due = string.format('%.0f', due_of(head, job.due, first))
  local by = start_by(head.start_within, due)
  call('HSET', JOBS, e.id, by and with_start_by(job.record, by) or job.record)
  call('HDEL', CRASHES, e.id)
  call('HDEL', CHECKPOINTS, e.id)
  if call('HDEL', LOGS, e.id) > 0 then
    call('DEL', LOG .. e.id)
  end
  call('ZREM', EXPIRES, e.id)
  if by then
    call('ZADD', EXPIRES, by, e.id)
    note_use(EXPIRY, true)
  end
  if home ~= SCHEDULE then
    note_use(LEVELS, true)
  end
  if home ~= set then
    call('ZREM', set, e.id)
  end
  call('ZADD', home, due, e.id)
  e.keeps, e.window, e.first = keeps_of(head), window_of(head, now), head.debounce and first or 0
  call('HSET', UNIQUE, key, text_of(e))
  if e.parked ~= '' then -- the job that follows it waits for this window, too
    local record = call('HGET', JOBS, e.parked) or ''
    expire_parked(e.parked, record, head_of(record) or {},
      math.max(call('ZSCORE', PARKED, e.parked) or 0, e.window))
  end
end

-- It follows the holder. One job at most does: a later one replaces what it is to do.
local function park(e, key, job)
  local head, parked = job.head, e.parked ~= '' and e.parked or nil
  local first = parked and e.first > 0 and math.min(e.first, now) or now
  local id, due = parked or job.id, due_of(head, job.due, first)
  call('HSET', JOBS, id, job.record)
  call('ZADD', PARKED, string.format('%.0f', due), id)
  call('ZREM', EXPIRES, id)
  expire_parked(id, job.record, head, math.max(due, e.window, now))
  e.parked, e.first = parked or job.id, head.debounce and first or 0
  call('HSET', UNIQUE, key, text_of(e))
  if not parked then
    call('DEL', P .. 'ended:' .. job.id)
    forget_kept({ job.id })
    count('enqueued', 1)
  end
  return parked
end

-- job: id, head (of its record), key, record, due (ms), place. Returns the text for `unique` if it takes the
-- key (job.due may be later then); or nil and its code: another job stands for it, or it is parked.
local function take_key(job)
  local head, key = job.head, job.key
  local mode = head.debounce and 'replace' or head.on_conflict or 'skip'
  call('HINCRBY', META, 'enqueued', '0') -- a full Redis refuses this, and so all
  local e, state, set = holder_of(key)
  if is_taken(job.id) then
    return nil, EXISTS
  elseif e and mode == 'skip' then
    return nil, met(job.place, 'skipped', e.id, state)
  elseif state == EXISTS and mode == 'replace' then
    replace(e, set, key, job)
    return nil, met(job.place, 'replaced', e.id, EXISTS)
  elseif e and state ~= GONE then
    local parked = park(e, key, job)
    if mode == 'cancel' and state == RUNS then
      ask_to_cancel(e.id)
    end
    if parked then
      return nil, met(job.place, 'replaced', parked, WAITS_FOR)
    end
    return nil, met(job.place, 'parked', e.id, state)
  end
  local from = now
  if e then -- its window: the job comes after it
    local length = window_of(head, 0)
    from = length > 0 and math.min(e.window, now + length) or e.window -- if this clock was set back
    call('ZREM', WINDOWS, key)
  end
  job.due = math.max(due_of(head, job.due, now), e and from or 0)
  return text_of({ id = job.id, keeps = keeps_of(head), window = window_of(head, from),
    first = head.debounce and now or 0 })
end

-- A dead job takes its unique key again. False: another one holds it.
local function take_again(id, key, head)
  local e = holder_of(key)
  if e and e.id ~= id then
    return false
  elseif e then
    call('ZREM', WINDOWS, key)
  else
    call('HSET', UNIQUE, key, text_of({ id = id, keeps = keeps_of(head), window = 0, first = 0 }))
    note_use(UNIQUE_KEYS, true)
    if keeps_of(head) == 's' then
      note_use(FREED_AT_START, true)
    end
  end
  return true
end

-- A job that ran waits in `set` again, and is due then. One that freed its key when it started takes it
-- again, if it is free. One that another job follows ends here: that one takes its place.
local function back_to_wait(id, set, due)
  local key, head = key_of(call('HGET', JOBS, id) or '')
  local e = key and entry_of(call('HGET', UNIQUE, key))
  if e and e.id == id and e.parked ~= '' and expire_late(e.parked) then
    e = entry_of(call('HGET', UNIQUE, key))
  end
  if not key then
    return
  elseif e and e.id == id and e.parked ~= '' then
    unpark(key, e, math.max(due, e.window))
    leave('replaced', { id }, set)
  elseif e and e.id == id then
    call('ZREM', WINDOWS, key)
    if e.first > 0 then -- a debounce counts from what comes now
      e.first = 0
      call('HSET', UNIQUE, key, text_of(e))
    end
  elseif keeps_of(head) == 's' and not (e and holder_of(key)) then
    call('HSET', UNIQUE, key, text_of({ id = id, keeps = 's', window = 0, first = 0 }))
  end
end

-- The id of the holder of its unique key; '' : it is not parked, or its key does not name it.
local function job_before(place, id, record)
  local key = place == 'parked' and key_of(record)
  local e = key and entry_of(call('HGET', UNIQUE, key))
  return e and e.parked == id and e.id or ''
end
