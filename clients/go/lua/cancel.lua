-- A job is not wanted any more: one that waits is removed, of one that runs the holder is asked to
-- end it.
-- Stable since 0.2: clients of all languages call it (docs/keys.md).
--
--  KEYS[1]  prefix      hf:{queue}:
--  ARGV[1]  not_after   ms on Redis's clock; 0: no limit. Behind it a word for this request, or none
--  ARGV[2]  id
--  returns  {OK, now} (removed) | {RUNS, now, token, until, accepted} (its holder hears of it with its next
--           renewal; the end of its lease; token '': its lock has ended, and it is removed when it
--           is taken over, unless its holder renews it; accepted: for `await`) | {IS_DEAD, now} | {GONE, now} | {LATE, now}
--           Sent twice: the same; without a word GONE if it was removed.
local call, concat, floor = redis.call, table.concat, math.floor
local P = KEYS[1]
local time = call('TIME')
local micros = string.sub('00000' .. time[2], -6) -- six digits
local stamp = time[1] .. string.sub(micros, 1, 3)
local now = stamp + 0
call('EXISTS', P, P .. '/')
local time_limit, request
local function came_late(not_after)
  not_after = tonumber(not_after)
  return not_after > 0 and now > not_after
end
local function answered(not_after)
  time_limit, request = string.match(not_after, '^(%d+) ?(.*)$')
  local kept = request ~= '' and call('GET', P .. 'answer:' .. request)
  if kept then
    return cjson.decode(kept)
  end
  return came_late(time_limit) and { (-4), now } or nil
end
local known = answered(ARGV[1])
if known then
  return known
end
local META = P .. 'meta'
local uses = call('HGET', META, 'uses')
if (uses and string.find(uses, 's', 1, true)) then
  return { err = 'SHARDED holdfast: ' .. (call('HGET', META, 'shards') or '') }
end
local id = ARGV[2]
local WAKE = P .. 'wake'
local function open_writes()
  call('ZREM', WAKE, '')
end
open_writes()
local EXPIRES = P .. 'expires'
local LEVELS_BEHIND = { ':h', '', ':l' }
local SCHEDULE = P .. 'schedule'
local function levels(but_the_usual)
  local sets = {}
  for _, behind in ipairs(LEVELS_BEHIND) do
    sets[#sets + 1] = (behind ~= '' or not but_the_usual) and SCHEDULE .. behind or nil
  end
  return sets
end
local function levels_used(uses)
  return (uses and string.find(uses, 'l', 1, true)) and levels() or { SCHEDULE }
end
local JOBS = P .. 'jobs'
local function head_of(record)
  local nl = string.find(record, '\n', 1, true)
  local ok, head = pcall(cjson.decode, nl and string.sub(record, 1, nl - 1) or '')
  return ok and type(head) == 'table' and head or nil
end
local function key_of(record)
  record = record or ''
  local line = string.sub(record, 1, (string.find(record, '\n', 1, true) or 0) - 1)
  local head = string.find(line, '"unique"', 1, true) and head_of(line .. '\n')
  if head and type(head.unique) == 'string' then
    return head.unique, head
  end
end
local function has_marks(prefix)
  return call('EXISTS', prefix .. 'crashes', prefix .. 'cancel', prefix .. 'waits', prefix .. 'progress',
    prefix .. 'checkpoint', prefix .. 'logs') > 0
end
local UNIQUE, WINDOWS, PARKED = P .. 'unique', P .. 'windows', P .. 'parked'
local VOIDS = { cancelled = true, deleted = true, purged = true }
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
local function with_start_by(record, by)
  return '{"start_by":' .. by .. ',' .. string.sub(record, 2)
end
local function note_use(feature, on)
  local uses = call('HGET', META, 'uses') or ''
  local others = string.gsub(uses, feature, '')
  if on and others == uses then
    call('HSET', META, 'uses', uses .. feature)
  elseif not on and others ~= uses then
    if others == '' then
      call('HDEL', META, 'uses')
    else
      call('HSET', META, 'uses', others)
    end
  end
end
local function expire_parked(id, record, head, earliest)
  local by = head.start_within and math.min(253402300799999, earliest + head.start_within)
  if by and by > (head.start_by or 0) then
    by = string.format('%.0f', by)
    call('HSET', JOBS, id, with_start_by(string.gsub(record, '^{"start_by":%d+,', '{', 1), by))
    call('ZADD', EXPIRES, by, id)
    note_use('x', true)
  end
end
local OF_PRIORITY = { high = ':h', low = ':l' }
local function level_of(priority)
  return SCHEDULE .. (priority and OF_PRIORITY[priority] or '')
end
local function keeps_of(head)
  return (head.debounce or head.unique_until == 'start') and 's' or head.unique_until == 'done' and 'd'
    or 'e'
end
local function window_of(head, from)
  local length = tonumber(head.throttle or head.unique_for or 0) or 0
  return length > 0 and from + length or 0
end
local function unpark(key, e, least)
  local id, record = e.parked, call('HGET', JOBS, e.parked) or ''
  local head, due = head_of(record) or {}, tonumber(call('ZSCORE', PARKED, id) or now)
  if (head.start_by or now + 1) > now then
    expire_parked(id, record, head, math.max(due, least))
  end
  if due > now then
    local high = tonumber(call('HGET', META, 'high') or 0)
    due = now < high and due <= high + 100 and now or due -- this clock was set back since
  end
  local home, from = level_of(head.priority), math.max(now, least)
  if home ~= SCHEDULE then
    note_use('l', true)
  end
  call('ZREM', PARKED, id)
  call('ZREM', WINDOWS, key)
  call('ZADD', home, string.format('%.0f', math.max(due, from)), id)
  call('HSET', UNIQUE, key,
    text_of({ id = id, keeps = keeps_of(head), window = window_of(head, from),
      first = head.debounce and e.first or 0 }))
end
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
local WAITS = P .. 'waits'
local function end_of(id, accepted)
  return P .. 'ended:@' .. accepted .. ':' .. id
end
local TOLD_AS = { purged = 'deleted', trimmed = 'deleted', replaced = 'cancelled' }
local function tell_end(id, note, how)
  local accepted, clients = string.match(note, '^(%d+)(.*)$')
  if not accepted then
    return
  end
  call('SET', end_of(id, accepted), stamp .. ' ' .. (TOLD_AS[how] or how) .. clients, 'PX', '86400000')
  for client in string.gmatch(clients, '[^%s*]+') do
    call('RPUSH', P .. 'told:' .. client, id)
    call('PEXPIRE', P .. 'told:' .. client, '60000')
  end
end
local CRASHES = P .. 'crashes'
local CANCELS = P .. 'cancel'
local PROGRESS = P .. 'progress'
local CHECKPOINTS = P .. 'checkpoint'
local LOGS = P .. 'logs' -- and LOG: the lines themselves
local LOG = P .. 'log:'
local function leave(how, ids, set, locks, leaving)
  if #ids == 0 then
    return
  end
  local from, marked = 1, has_marks(P)
  local expiring = call('EXISTS', EXPIRES) == 1
  local m = call('HMGET', META, 'uses', 'on_dead')
  local uses = m[1]
  local unparked
  leaving = leaving or (uses and string.find(uses, 'u', 1, true))
  if set then
    call('ZREM', set, unpack(ids, from))
  end
  if leaving then
    unparked = free_keys(how, ids, from, leaving)
  end
  if how ~= 'dead' then
    call('HDEL', JOBS, unpack(ids, from))
  end
  if locks then
    call('DEL', unpack(locks))
  end
  if marked then
    for k, note in ipairs(call('HMGET', WAITS, unpack(ids, from))) do
      if note then
        tell_end(ids[from + k - 1], note, how)
      end
    end
    call('HDEL', CRASHES, unpack(ids, from))
    call('HDEL', CANCELS, unpack(ids, from))
    call('HDEL', WAITS, unpack(ids, from))
    call('HDEL', PROGRESS, unpack(ids, from))
    local gone = how ~= 'dead'
    if gone then
      call('HDEL', CHECKPOINTS, unpack(ids, from))
      if call('HDEL', LOGS, unpack(ids, from)) > 0 then
        for k = from, #ids do
          if how == 'done' or how == 'cancelled' then -- those that follow it read its last lines (logs.lua)
            call('PEXPIRE', LOG .. ids[k], '5000')
          else
            call('DEL', LOG .. ids[k])
          end
        end
      end
    end
    note_use('m', has_marks(P))
  end
  if expiring then
    call('ZREM', EXPIRES, unpack(ids, from))
  end
  if how == 'cancelled' or how == 'deleted' or how == 'expired' or how == 'replaced' then
    local last = string.format('%d', math.max(60000, call('PTTL', P .. 'ended:')))
    call('SET', P .. 'ended:', stamp .. ' ' .. how, 'PX', last)
    for k = from, #ids do
      call('SET', P .. 'ended:' .. ids[k], stamp .. ' ' .. how, 'PX', '60000')
    end
  end
  if how ~= 'dead' and how ~= 'trimmed' then
    local n = #ids - from + 1
    call('HINCRBY', META, how == 'purged' and 'deleted' or how, n == 1 and '1' or n)
  end
  return m[2]
end
local function expire(ids, times)
  local uses = call('HGET', META, 'uses') or ''
  local keyed = (uses and string.find(uses, 'u', 1, true))
  local sets, over, keys, dying, strange, bytes = {}, {}, {}, {}, {}, 0
  local places = levels_used(uses)
  places[#places + 1] = keyed and P .. 'parked' or nil
  for _, set in ipairs(places) do
    over[set], keys[set] = {}, {}
    for k, score in ipairs(call('ZMSCORE', set, unpack(ids))) do
      sets[k] = sets[k] or score and set
    end
  end
  for k, record in ipairs(call('HMGET', JOBS, unpack(ids))) do
    local text, set = record or '', sets[k]
    local line = string.sub(text, 1, (string.find(text, '\n', 1, true) or 0) - 1)
    local by = tonumber(string.match(line, '"start_by":%s*(%d+)') or nil)
    bytes = bytes + #text
    if not set or by ~= times[k] + 0 then
      strange[#strange + 1] = ids[k]
    elseif string.find(line, '"expired":%s*"dead"') then
      dying[#dying + 1] = { ids[k], set, record }
    else
      local n = #over[set] + 1
      over[set][n], keys[set][n] = ids[k], keyed and (key_of(line) or '')
    end
  end
  for set, members in pairs(over) do
    leave('expired', members, set, nil, keyed and keys[set])
  end
  if #strange > 0 then
    call('ZREM', EXPIRES, unpack(strange))
  end
  return dying, bytes
end
local function rewrite(record, change)
  local nl = string.find(record, '\n', 1, true) or 0
  local function changed(head)
    change(assert(head.type or head.v) and head)
    return cjson.encode(head)
  end
  local ok, line = pcall(function()
    return changed(cjson.decode(string.sub(record, 1, math.max(nl - 1, 0))))
  end)
  line = ok and line or changed({ v = 1, type = 'unknown', created = now })
  return line .. (nl == 0 and '\n' .. record or string.sub(record, nl))
end
local function goes_on(text, at)
  return at <= #text and bit.band(string.byte(text, at), 0xC0) == 0x80
end
local function cut(text, most)
  if #text <= most then
    return text
  end
  text = string.match(text, '^(.-)%s*$')
  local line = string.match(text, '[^\n]*$')
  local first = #line > most and floor(most / 2) - 3 or 0
  while goes_on(line, first + 1) and first > 0 do
    first = first - 1
  end
  local start = first > 0 and string.sub(line, 1, first) .. '...' or ''
  local from = math.max(1, #text - (most - #start) + 1)
  while goes_on(text, from) do
    from = from + 1
  end
  return start .. string.sub(text, from)
end
local function note_attempt(head, worker, ran, text)
  local list = type(head.history) == 'table' and head.history or {}
  while #list > 9 do
    table.remove(list, 1)
  end
  list[#list + 1] = { at = now, worker = worker, ran = ran, error = cut(text, 256) }
  head.attempts, head.history = (head.attempts or 0) + 1, list
end
local RUNNING = P .. 'running'
local LOCK = P .. 'lock:'
local DEAD = P .. 'dead'
local function type_about(head, files)
  local own = head.on_dead
  if own == nil and files then
    local good, types = pcall(cjson.decode, files)
    types = good and type(types) == 'table' and types or {}
    own = types[head.type]
    if own == nil then
      own = types['*']
    end
  end
  return type(own) == 'string' and own or nil
end
local function id_of_death(id)
  local tail, n = '.dead', 1
  while true do
    local about = id .. tail
    if #about > 128 then
      about = string.sub(id, 1, 87 - #tail) .. '.' .. redis.sha1hex(id) .. tail
    end
    if call('HEXISTS', JOBS, about) == 0 then
      return about
    end
    n = n + 1
    tail = '.dead.' .. (n <= 100 and n or stamp .. '.' .. n) -- each takes a look: this many at most, then a time
  end
end
local DONE, KEPT, RESULTS = P .. 'done', P .. 'kept', P .. 'results'
local function forget(ids)
  local bytes = 0
  for k = 1, #ids do
    bytes = bytes + call('HSTRLEN', RESULTS, ids[k])
  end
  if #ids > 0 then
    call('ZREM', DONE, unpack(ids))
    call('ZREM', KEPT, unpack(ids))
    call('HDEL', RESULTS, unpack(ids))
    call('HINCRBY', RESULTS, '', -bytes)
    if call('EXISTS', DONE) == 0 then
      call('DEL', RESULTS)
      note_use('k', false)
    end
  end
  return #ids
end
local function forget_kept(ids)
  local kept = {}
  for k, ended in ipairs(#ids > 0 and call('ZMSCORE', DONE, unpack(ids)) or {}) do
    if ended then
      kept[#kept + 1] = ids[k]
    end
  end
  return forget(kept)
end
local IN_PAST = { crashed = '!crashed', lost = '!lost' }
local PAST = P .. 'past:'
local function count(field, by)
  if by > 0 then
    call('HINCRBY', META, field, by)
    if IN_PAST[field] then
      for _, step in ipairs({ { '', 60000, 10800000 }, { 't', 600000, 172800000 } }) do
        local key = PAST .. step[1] .. string.format('%.0f', floor(now / step[2]))
        call('HINCRBY', key, IN_PAST[field], by)
        if call('PTTL', key) < 0 then
          call('PEXPIRE', key, string.format('%d', step[3] + step[2]))
        end
      end
    end
  end
end
local function announce(id, head, files)
  local payload, kind = {}, type_about(head, files)
  if not kind then
    return
  end
  local about = id_of_death(id)
  local names = { 'id', 'type', 'queue', 'reason', 'error', 'attempts' }
  local told = {
    id = id, type = head.type, queue = string.match(P, '{([^}/]*)'), reason = head.reason,
    error = head.error, attempts = head.attempts or 0,
  }
  for k = 1, #names do
    payload[k] = cjson.encode(names[k]) .. ':' .. cjson.encode(told[names[k]])
  end
  local line = string.format('{"type":%s,"created":%s,"on_dead":0}\n', cjson.encode(kind), stamp)
  call('HSET', JOBS, about, line .. '{' .. concat(payload, ',') .. '}')
  call('ZADD', SCHEDULE, stamp, about)
  call('DEL', P .. 'ended:' .. about)
  forget_kept({ about })
  count('enqueued', 1)
  local at, doubted, next_wake = now, true, nil
  if not at then
    if next_wake then
      call('DEL', WAKE)
      call('HDEL', META, 'next_wake')
    end
    next_wake = nil
  elseif doubted or not next_wake or next_wake > at
    or next_wake < (at > now and now + 1 or now - 100) then
    local text = at <= now and stamp or string.format('%d', at)
    call('ZADD', WAKE, at <= now and '0' or text, 'baton')
    call('HSET', META, 'next_wake', text)
    next_wake = at
  end
end
local function bury(set, id, record, reason, text, worker, ran)
  local line
  record = rewrite(record, function(head)
    line = head
    if ran then
      note_attempt(head, worker, ran, text)
    end
    head.reason, head.error, head.died, head.start_by = reason, text, now, nil
  end)
  local files = leave('dead', { id }, set, set == RUNNING and { LOCK .. id })
  call('HSET', JOBS, id, record)
  call('ZADD', DEAD, stamp, id)
  if line.on_dead or files then
    announce(id, line, files)
  end
end
local function put_away(buried, set, id, record, reason, text)
  bury(set, id, record, reason, text)
  buried[#buried + 2], buried[#buried + 1] = text, id
end
local function expire_some(ids, times, buried)
  local dying, bytes = expire(ids, times)
  for k = 1, #dying do
    local id, set, record = unpack(dying[k])
    local within = tonumber(string.match(record, '"start_within":%s*(%d+)') or 0)
    put_away(buried, set, id, record, 'expired', string.format('it did not start within %gs', within / 1000))
  end
  count('expired', #dying) -- the door counts no deaths
  return #dying, bytes
end
local function expire_all(ids, times, buried)
  local parked, others = { {}, {} }, { {}, {} }
  for k, score in ipairs(call('EXISTS', P .. 'parked') == 1 and call('ZMSCORE', P .. 'parked', unpack(ids)) or {}) do
    local list = score and parked or others
    list[1][#list[1] + 1], list[2][#list[2] + 1] = ids[k], times[k]
  end
  open_writes()
  if #parked[1] == 0 then
    return expire_some(ids, times, buried)
  end
  local died, bytes = expire_some(parked[1], parked[2], buried)
  if #others[1] > 0 then
    local more_died, more_bytes = expire_some(others[1], others[2], buried)
    died, bytes = died + more_died, bytes + more_bytes
  end
  return died, bytes
end
local function expire_late(id)
  local by = call('ZSCORE', EXPIRES, id)
  if by and by + 0 <= now then
    expire_all({ id }, { by }, {})
    return true
  end
end
local function read_meta()
  local m = call('HMGET', META, 'paused', 'max_running', 'rate_limit', 'rate_per', 'tokens',
    'tokens_at', 'next_wake', 'fence', 'uses', 'high')
  return {
    paused = m[1] == '1', max_running = tonumber(m[2] or 0), rate = tonumber(m[3] or 0),
    per = tonumber(m[4] or 0), tokens = tonumber(m[5] or false), tokens_at = tonumber(m[6] or 0),
    next_wake = tonumber(m[7] or false), fence = tonumber(m[8] or 0), uses = m[9] or '',
    high = tonumber(m[10] or 0),
  }
end
local function heed_clock(high, slices)
  if now >= high and now <= high + 100 then
    return high
  end
  local to = high + 100
  open_writes()
  for _ = 1, slices or 1 do
    local moved = 0
    for _, set in ipairs(now < high and levels() or {}) do
      local jobs = call('ZRANGEBYSCORE', set, '(' .. stamp, string.format('%d', to), 'WITHSCORES',
        'LIMIT', 0, 1000 - moved)
      for i = 1, #jobs, 2 do
        call('ZADD', set, 'XX', string.format('%d', jobs[i + 1] - (to - now)), jobs[i])
      end
      moved = moved + #jobs / 2
    end
    if moved < 1000 then
      call('HSET', META, 'high', stamp)
      return now
    end
  end
  return high -- there may be more
end
local function first_due(uses)
  local first
  for _, set in ipairs(levels_used(uses)) do
    local score = tonumber(call('ZRANGE', set, 0, 0, 'WITHSCORES')[2])
    first = score and (not first or score < first) and score or first
  end
  return first
end
local function tokens(m, back)
  local burst, ms = math.max(1, floor(m.rate / 10)), now - m.tokens_at
  return math.min(burst, (ms > -1000 and m.tokens or burst) + math.max(0, ms) * m.rate / m.per
    + (back or 0))
end
local function next_token(m)
  local have = m.rate > 0 and tokens(m) or 1
  return have < 1 and now + math.ceil((1 - have) * m.per / m.rate) or 0
end
local function next_taking(m, earliest)
  if m.paused then
    return nil
  end
  local at = call('ZRANGE', RUNNING, 0, 0, 'WITHSCORES')[2] == '0' and earliest or nil
  if m.max_running > 0 and call('ZCARD', RUNNING) >= m.max_running then
    return at
  end
  local head = first_due(m.uses)
  if head then
    local due = math.max(head, next_token(m))
    due = due >= now + 1 and due or earliest
    at = at and math.min(at, due) or due
  end
  return at
end
local function next_tick()
  local head = tonumber(call('ZRANGE', P .. 'cron_next', 0, 0, 'WITHSCORES')[2] or false)
  if not head or head > now then
    return head
  end
  local by = tonumber(call('HGET', META, 'cron_by') or 0)
  return by <= now + 1000 and math.max(head, by) or head -- later only if this clock was set back
end
local function next_claim(m, earliest)
  local at = next_taking(m, earliest)
  if (m.uses and string.find(m.uses, 'x', 1, true)) then
    local by = tonumber(call('ZRANGE', EXPIRES, 0, 0, 'WITHSCORES')[2])
    at = by and at and math.min(at, by) or by or at
  end
  if not m.paused and (m.uses and string.find(m.uses, 'c', 1, true)) then
    local tick = next_tick()
    at = tick and math.min(at or tick, tick) or at
  end
  return at
end
local function wake(m, doubted, earliest)
  m.high = heed_clock(m.high)
  local at = next_claim(m, earliest or now)
  at = at and math.min(253402300799999, math.max(floor(at), now))
  local next_wake = m.next_wake
  if not at then
    if next_wake then
      call('DEL', WAKE)
      call('HDEL', META, 'next_wake')
    end
    next_wake = nil
  elseif doubted or not next_wake or next_wake > at
    or next_wake < (at > now and now + 1 or now - 100) then
    local text = at <= now and stamp or string.format('%d', at)
    call('ZADD', WAKE, at <= now and '0' or text, 'baton')
    call('HSET', META, 'next_wake', text)
    next_wake = at
  end
  m.next_wake = next_wake
  return at or 0
end
if expire_late(id) then -- another job may wait now
  wake(read_meta())
end
if call('ZSCORE', DEAD, id) then
  return { (-7), now }
end
local function lease_left(id)
  local ahead = math.max(0, (call('HGET', META, 'clock') or 0) - now)
  return math.max(0, call('PTTL', LOCK .. id) - ahead)
end
local function ask_to_cancel(id)
  local ends = call('ZSCORE', RUNNING, id)
  local token = ends and (call('GET', LOCK .. id) or '')
  if token then
    call('HSET', CANCELS, id, token == '' and '*' or string.match(token, '(%d*)$'))
    note_use('m', true)
  end
  return token, ends and now + lease_left(id) or 0
end
local token, ends = ask_to_cancel(id)
local function keep_answer(reply)
  if request ~= '' then
    local life = time_limit == '0' and 60000 or math.max(1, time_limit - now + 1)
    call('SET', P .. 'answer:' .. request, cjson.encode(reply), 'PX', life)
  end
  return reply
end
if token then
  local function note_wait(id, client, accepted, again)
    local at, clients = string.match(call('HGET', WAITS, id) or '', '^(%d+)(.*)$')
    local n = 0
    for _ in string.gmatch(clients or '', '%S+') do
      n = n + 1
    end
    if not at then
      at, clients = accepted or stamp, ''
      while not accepted and call('EXISTS', end_of(id, at)) == 1 do
        at = string.format('%.0f', at + 1)
      end
      note_use('m', true)
    end
    if n < 100 and (again or not string.find(clients .. ' ', ' ' .. client .. ' ', 1, true)) then
      call('HSET', WAITS, id, at .. clients .. ' ' .. client)
    end
    return at
  end
  return keep_answer({ (-6), now, token, ends, note_wait(id, '*') + 0 })
end
local function waits_in(id)
  for _, set in ipairs(levels()) do
    local score = call('ZSCORE', set, id)
    if score then
      return set, score
    end
  end
end
local set = waits_in(id) or call('ZSCORE', PARKED, id) and PARKED
if not set then
  return { (-3), now }
end
leave('cancelled', { id }, set)
wake(read_meta())
return keep_answer({ 0, now })
