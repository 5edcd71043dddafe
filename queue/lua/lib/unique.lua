-- unique.lua - unique keys: at most one job holds a key.

-- Unique keys: at most one job holds a key.
--
-- `unique` says of each key that is taken: `<holder> <until> <window> <first> <parked>`. Mostly it is only the
-- holder: then the rest is `e 0 0`.
--   until   e: the holder frees it when it is done or dies; s: when it starts; d: when it is done
--   window  ms on Redis's clock; until then the key is taken, even when the holder is gone; 0: no
--   first   ms; when the first of the jobs was accepted that a debounce has put together; 0: none
--   parked  the id of the job that follows the holder; may be left out
-- `windows` has the keys whose holders are gone before the end of their window, scored by that end.
-- `parked` has the jobs that follow holders, scored by when they are due, at the earliest. A job frees
-- a key only if the key names its id, so none frees what another one holds.

-- What `unique` says of a key; nil: it is free, or the text cannot be read.
local function entry_of(value)
  value = string.gsub(value or '', '^%S+$', '%0 e 0 0')
  local id, keeps, window, first, parked = string.match(value, '^(%S+) (%l) (%d+) (%d+) ?(%S*)$')
  return id and { id = id, keeps = keeps, window = window + 0, first = first + 0, parked = parked }
end

local function text_of(e)
  if e.window == 0 and e.first == 0 and (e.parked or '') == '' then
    return e.keeps == 'e' and e.id or e.id .. ' ' .. e.keeps .. ' 0 0' -- to format numbers takes long
  end
  local text = string.format('%s %s %.0f %.0f', e.id, e.keeps, e.window, e.first)
  return e.parked and e.parked ~= '' and text .. ' ' .. e.parked or text
end

-- The letter for a record's `unique_until`; a debounced job frees its key when it starts.
local function keeps_of(head)
  return (head.debounce or head.unique_until == 'start') and 's' or head.unique_until == 'done' and 'd'
    or 'e'
end

-- The end of its window, counted from `from`; 0: it has none.
local function window_of(head, from)
  local length = tonumber(head.throttle or head.unique_for or 0) or 0
  return length > 0 and from + length or 0
end

-- A parked job expires this long after `earliest`; its time only becomes longer.
local function expire_parked(id, record, head, earliest)
  local by = head.start_within and math.min(TIME_MAX, earliest + head.start_within)
  if by and by > (head.start_by or 0) then
    by = string.format('%.0f', by)
    call('HSET', JOBS, id, with_start_by(string.gsub(record, '^{"start_by":%d+,', '{', 1), by))
    call('ZADD', EXPIRES, by, id)
    note_use(EXPIRY, true)
  end
end

-- The parked job of a key takes it, and waits from now on; not before `least`. If its time is over, it is gone.
local function unpark(key, e, least)
  local id, record = e.parked, call('HGET', JOBS, e.parked) or ''
  local head, due = head_of(record) or {}, tonumber(call('ZSCORE', PARKED, id) or now)
  if (head.start_by or now + 1) > now then
    expire_parked(id, record, head, math.max(due, least))
  end
  if due > now then
    local high = tonumber(call('HGET', META, 'high') or 0)
    due = now < high and due <= high + HIGH_MS and now or due -- this clock was set back since
  end
  local home, from = level_of(head.priority), math.max(now, least)
  if home ~= SCHEDULE then
    note_use(LEVELS, true)
  end
  call('ZREM', PARKED, id)
  call('ZREM', WINDOWS, key)
  call('ZADD', home, string.format('%.0f', math.max(due, from)), id)
  call('HSET', UNIQUE, key,
    text_of({ id = id, keeps = keeps_of(head), window = window_of(head, from),
      first = head.debounce and e.first or 0 }))
end

-- The holder of a key does not hold it any more; `voids`: its window ends as well.
local function free_key(key, e, voids)
  local window = not voids and e.window > now and e.window or 0
  if e.parked ~= '' then
    unpark(key, e, window)
  elseif window > 0 then
    call('ZADD', WINDOWS, string.format('%.0f', window), key)
  else
    call('HDEL', UNIQUE, key)
    if e.window > 0 then
      call('ZREM', WINDOWS, key)
    end
  end
end

-- keys: of each of these ids, '': it has none; no table: their records tell them. True: a parked job waits now.
local function free_keys(how, ids, from, keys)
  if type(keys) ~= 'table' then
    keys = {}
    for k = from, #ids do
      keys[k - from + 1] = key_of(call('HGET', JOBS, ids[k])) or ''
    end
  end
  local plain, n, others = {}, 0, nil
  for k, value in ipairs(call('HMGET', UNIQUE, unpack(keys))) do
    if value == ids[from + k - 1] then
      n = n + 1
      plain[n] = keys[k]
    elseif value then
      others = others or {}
      others[#others + 1] = k
    end
  end
  if n > 0 then
    call('HDEL', UNIQUE, unpack(plain))
  end
  if others then
    return free_others(how, ids, from, keys, others)
  end
end

-- The ends that free a key at once, whatever its window says and even if it is held until the job is done:
-- a command asked for them.
local VOIDS = { cancelled = true, deleted = true, purged = true }

-- As free_keys, for those k in `others`.
local function free_others(how, ids, from, keys, others)
  local unparked, voids = false, VOIDS[how]
  for _, k in ipairs(others) do
    local id, key = ids[from + k - 1], keys[k]
    local e = entry_of(call('HGET', UNIQUE, key)) or {}
    if e.parked == id then
      e.parked = ''
      call('HSET', UNIQUE, key, text_of(e))
    elseif e.id == id and (how ~= 'dead' or e.keeps ~= 'd') then
      unparked = unparked or e.parked ~= ''
      free_key(key, e, voids)
    end
  end
  return unparked
end

-- Mostly there are none: to look for them takes little. True: a parked job waits now.
local function free_at_start(ids, records, from, to)
  local some
  for k = from, to do
    local line = string.sub(records[k], 1, string.find(records[k], '\n', 1, true) or 0)
    if string.find(line, '"unique_until"', 1, true) or string.find(line, '"debounce"', 1, true) then
      some = some or {}
      some[#some + 1] = k
    end
  end
  if not some then
    return
  end
  local unparked = false
  for _, k in ipairs(some) do
    local key, head = key_of(records[k])
    local e = key and keeps_of(head) == 's' and entry_of(call('HGET', UNIQUE, key))
    if e and e.id == ids[k] then
      unparked = unparked or e.parked ~= ''
      free_key(key, e)
    end
  end
  return unparked
end

-- Forgets windows that are over, at most this many.
local function end_windows(most)
  local over = call('ZRANGEBYSCORE', WINDOWS, '-inf', stamp, 'LIMIT', 0, math.min(most, 3000))
  if #over > 0 then
    call('HDEL', UNIQUE, unpack(over))
    call('ZREM', WINDOWS, unpack(over))
  end
end
