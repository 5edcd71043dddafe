-- Accept jobs, all or none, some of which have options: as enqueue, which takes those without.
-- Stable since 0.2: clients of all languages call it (docs/keys.md).
--
--  KEYS[1]   prefix      hf:{queue}:
--  ARGV[1]   producer    a name; '' : nothing is remembered, and number does not matter
--  ARGV[2]   number      of this request; new ones rise for each producer and queue, and one
--                        that is sent again is less than SPAN below the highest
--  ARGV[3]   not_after   ms on Redis's clock; 0: no limit
--  ARGV[4]   remember    ms for which the number is remembered
--  ARGV[5]   waited      ms since the call was made: taken off the delays
--  ARGV[6..] id, due, record for each job, 1 to 10,000: an id as every name; due is 0 (now), an
--            absolute time in ms, or the negative of a delay in ms; a record is
--            `{"type":"T","created":MS,"priority":"high"}\npayload`, at most 64 MiB; docs/keys.md
--            lists the options
--  ARGV[last] made       may be left out: a letter for each job, the last one for all that follow;
--            n: its id was made for it and must be new, or nothing is changed; any other: it was
--            chosen. A first letter N (as n) or C (chosen) says that the caller has checked all
--            arguments, as the library has. Else the script does so, and an error that begins with
--            `ERR holdfast:` changes nothing.
--  returns   {OK, now, repeated, codes, conflicts, awaited} | {LATE, now} | {EXISTS, now, 0, codes}
--            repeated 1: the number was executed before, nothing was changed, and the answer is the
--            same as then;
--            codes: empty when all are new, else one for each: OK, EXISTS (queued), RUNNING,
--            DEAD. Of an id that is named twice the first counts. conflicts: may be left out; of each
--            job whose unique key another one holds: place, how, id, state (lib/conflicts.lua);
--            its code is EXISTS unless it is parked. awaited: may be left out; of each job with this
--            option: place, accepted (lib/marks.lua) of the job that is there for it, 0: none. A queue that is divided into
--            shards answers the error `SHARDED holdfast: <number> <tag> <tag> ...`: nothing was
--            changed, and its jobs belong to the queues with these tags.
local call, concat, floor = redis.call, table.concat, math.floor
local P = KEYS[1]
local time = call('TIME')
local micros = string.sub('00000' .. time[2], -6) -- six digits
local stamp = time[1] .. string.sub(micros, 1, 3)
local now = stamp + 0
local BIG_BYTES = 8192 -- a claim need not weigh records up to this size
local args, n = ARGV, floor((#ARGV - 5) / 3)
local made, optional = args[6 + 3 * n] or '', true
if made ~= 'N' and made ~= 'C' and not string.find(made, '^[NC]') then
  local function must(good, k, what)
    if not good then
      error(string.format('holdfast: %s: expected %s', k and 'job ' .. k or 'enqueue', what), 0)
    end
  end
  local lines = {} -- many jobs of a request have the same line
  local function is_name(text)
    return type(text) == 'string' and #text <= 128 and string.find(text, '^[%w%._:%-]+$')
  end
  local RESERVED = {
    { 'attempts', 'max_attempts is the limit' }, { 'start_by', 'start_within is the option' },
    { 'reason' }, { 'history' }, { 'error' }, { 'failed' }, { 'refused' }, { 'unhandled' }, { 'died' },
    { 'cron' }, { 'scheduled' }, { 'alone' }, { 'failed_fence' },
  }
  local function reserved_field(head)
    for _, field in ipairs(RESERVED) do
      local name = field[1]
      if head[name] ~= nil then
        return 'no ' .. name .. ' in its record; ' .. (field[2] or 'Holdfast writes it')
      end
    end
  end
  local function one_of(...)
    local words = { ... }
    return function(value)
      for _, word in ipairs(words) do
        if value == word then
          return true
        end
      end
      return false, 'as its %s ' .. concat(words, ' or ')
    end
  end
  local function a_time(value)
    local good = type(value) == 'number' and value % 1 == 0 and value >= 1 and value <= 3155760000000
    return good, 'as its %s a whole number of ms from 1 to ' .. string.format('%.0f', 3155760000000)
  end
  local function is_key(value)
    return type(value) == 'string' and #value >= 1 and #value <= 256, 'as its %s a text of 1 to 256 bytes'
  end
  local function is_type(value)
    return is_name(value), 'as its %s a type, 1 to 128 of A-Z a-z 0-9 . _ : -'
  end
  local function is_one(value)
    return value == 1, 'as its %s 1'
  end
  local OPTIONS = {
    { 'priority', one_of('high', 'low') }, { 'start_within', a_time }, { 'expired', one_of('dead') },
    { 'unique', is_key },
    { 'unique_until', one_of('start', 'done') },
    { 'unique_for', a_time },
    { 'on_conflict', one_of('replace', 'next', 'cancel') },
    { 'debounce', a_time },
    { 'max_wait', a_time },
    { 'throttle', a_time },
    { 'on_dead', is_type },
    { 'awaited', is_one },
    { 'replace_dead', is_one },
  }
  local function wrong_together(head)
    local debounce, throttle, others = head.debounce, head.throttle, head.unique_until or head.unique_for
      or head.on_conflict
    if not head.unique and (others or debounce or throttle) then
      return 'unique', 'a unique key for its other options'
    elseif (debounce and 1 or 0) ~= (head.max_wait and 1 or 0) then
      return 'max_wait', 'debounce and max_wait, or neither'
    elseif debounce and (others or throttle) then
      return 'debounce', 'no unique_until, unique_for, on_conflict and throttle with debounce'
    elseif throttle and (head.unique_for or head.on_conflict and head.on_conflict ~= 'next') then
      return 'throttle', 'no unique_for, and no on_conflict but next, with throttle'
    end
  end
  local function wrong_option(head, optional)
    for _, option in ipairs(OPTIONS) do
      local name, value = option[1], head[option[1]]
      if value ~= nil and not optional then
        return name, 'no ' .. name .. ' in its record: the script enqueue_with takes such jobs'
      end
      local good, expected = true, nil
      if value ~= nil then
        good, expected = option[2](value)
      end
      if not good then
        return name, string.format(expected, name)
      end
    end
    return wrong_together(head)
  end
  local function wrong_headers(line, head)
    local what = 'as its headers one JSON object whose values are texts, at most 4096 bytes'
    if head.headers == nil then
      return nil
    elseif type(head.headers) ~= 'table' then
      return what
    end
    for name, value in pairs(head.headers) do
      if type(name) ~= 'string' or type(value) ~= 'string' then
        return what
      end
    end
    local bare = string.gsub(line, '\\.', '..')
    bare = string.gsub(bare, '"[^"]*"', function(text)
      return (string.gsub(text, '[{}]', '.')) -- brackets in texts do not count
    end)
    local found = false
    for object in string.gmatch(bare, '"headers"%s*:%s*(%b{})') do
      found = true
      if #object > 4096 then
        return what
      end
    end
    return not found and what or nil -- an empty list
  end
  local WHOLE = {
    { 'v', 1, 1 }, { 'created', 0, 253402300799999 }, { 'max_attempts', 1, 4294967295 }, { 'timeout', 1, 4294967295 },
    { 'keep', 1, 3155760000000 },
  }
  local function is_number(word)
    local whole, rest = string.match(word, '^%-?(%d+)(.*)$')
    if not whole or string.find(whole, '^0%d') then
      return false
    elseif rest == '' then
      return #whole < 19 or #whole == 19 and whole <= '9223372036854775807'
    end
    return math.abs(tonumber(word) or math.huge) < math.huge and (string.find(rest, '^%.%d+$')
      or string.find(rest, '^[eE][+-]?%d+$') or string.find(rest, '^%.%d+[eE][+-]?%d+$'))
  end
  local UTF8 = {
    '[\194-\223][\128-\191]', '\224[\160-\191][\128-\191]', '[\225-\236\238\239][\128-\191][\128-\191]',
    '\237[\128-\159][\128-\191]', '\240[\144-\191][\128-\191][\128-\191]',
    '[\241-\243][\128-\191][\128-\191][\128-\191]', '\244[\128-\143][\128-\191][\128-\191]',
  }
  local function is_utf8(text)
    for k = 1, string.find(text, '[\128-\255]') and #UTF8 or 0 do
      text = string.gsub(text, UTF8[k], ' ') -- what is left and right of it does not come together
    end
    return not string.find(text, '[\128-\255]')
  end
  local function is_strict(line)
    local bare = string.gsub(line, '\\.', '')
    for text in string.gmatch(bare, '"[^"]*"') do
      if string.find(text, '[%z\1-\31]') then
        return false
      end
    end
    for word in string.gmatch(string.gsub(bare, '"[^"]*"', ''), '[^%s%[%]{}:,]+') do
      if word ~= 'true' and word ~= 'false' and word ~= 'null' and not is_number(word) then
        return false
      end
    end
    return is_utf8(line)
  end
  local function has_digits(line, name, value)
    for word in string.gmatch(line, '"' .. name .. '"%s*:%s*([^%s,}]+)') do
      if string.find(word, '^%d+$') and word + 0 == value then
        return true
      end
    end
  end
  local function wrong_line(line, fields)
    local ok, head = pcall(cjson.decode, line)
    if not (ok and type(head) == 'table' and string.find(line, '^%s*{') and is_strict(line)) then
      return 'a record: a line of JSON with a type, a newline, the payload; at most 64 MiB'
    elseif not is_name(head.type) then
      return 'a record with a type, 1 to 128 of A-Z a-z 0-9 . _ : -', head
    end
    for _, field in ipairs(fields) do
      local name, from, to = field[1], field[2], field[3]
      local value = head[name]
      if value ~= nil and not (type(value) == 'number' and value >= from and value <= to
        and has_digits(line, name, value)) then
        return string.format(from == to and 'as its %s %.0f' or 'as its %s a whole number from %.0f to %.0f', name,
          from, to), head
      end
    end
    return nil, head
  end
  local function wrong_record(text)
    local line = #text <= 67108864 and string.match(text, '^({[^\n]*})\r?\n') or ''
    if lines[line] == nil then
      local wrong, head = wrong_line(line, WHOLE)
      wrong = wrong or reserved_field(head) or wrong_headers(line, head)
      lines[line] = wrong or select(2, wrong_option(head, optional)) or false
    end
    return lines[line]
  end
  local function is_queue_prefix(prefix)
    local ns, tag = string.match(prefix, '^([^{}]+):{([^{}]+)}:$')
    return ns and is_name(ns) and is_name(string.match(tag, '^(.+)/%d+%-%d+$') or tag)
  end
  must(is_queue_prefix(P), nil, 'the key hf:{QUEUE}:, with the name of a queue, 1 to 128 of A-Z a-z 0-9 . _ : -')
  must(n >= 1 and n <= 10000 and (#args - 5) % 3 < 2, nil, 'id, due, record of 1 to 10000 jobs')
  must(args[1] == '' or is_name(args[1]), nil, 'a producer, 1 to 128 of A-Z a-z 0-9 . _ : -')
  local function digits(text, most)
    local value = string.find(text, '^%d+$') and tonumber(text)
    if not value or value > most then
      error(string.format('holdfast: expected a number from 0 to %.0f, found %s', most,
        string.gsub(string.sub(text, 1, 32), '%c', '?')), 0)
    end
    return value
  end
  digits(args[2], 2 ^ 53)
  digits(args[3], 253402300799999)
  must(digits(args[4], 3155760000000) > 0 or args[1] == '', nil, 'to remember a number for 1 ms or more')
  digits(args[5], 3155760000000)
  for k = 1, n do
    local i = 3 + 3 * k
    local due = string.find(args[i + 1], '^%-?%d+$') and args[i + 1] + 0
    must(is_name(args[i]), k, 'an id, 1 to 128 of A-Z a-z 0-9 . _ : -')
    must(due and due >= -3155760000000 and due <= 253402300799999, k, 'to be due at 0, a time, or minus a delay')
    local wrong = wrong_record(args[i + 2])
    must(not wrong, k, wrong)
  end
end
local SPAN = 32
local SEEN, highest, bits = P .. 'seen:' .. ARGV[1], ARGV[2], '1'
local words = call('MGET', SEEN, P .. 'ended:', P) -- P: steps/guard.lua
if words[1] and ARGV[1] ~= '' then
  local known, mask = string.match(words[1], '^(%d+):(-?%d+)$')
  local age = known - ARGV[2]
  if age >= SPAN or age >= 0 and bit.band(mask, bit.lshift(1, age)) ~= 0 then
    local kept = call('GET', P .. 'answer:' .. ARGV[1] .. ':' .. ARGV[2])
    return { 0, now, 1, unpack(kept and cjson.decode(kept) or { {} }) }
  end
  if age >= 0 then
    highest, bits = known, bit.bor(mask, bit.lshift(1, age))
  elseif age == -1 and mask == '-1' then -- as it is in the long run
    bits = mask
  elseif age > -SPAN then
    bits = bit.bor(bit.lshift(mask, -age), 1)
  end
end
if ARGV[3] ~= '0' and now > ARGV[3] + 0 then
  return { (-4), now }
end
local META = P .. 'meta'
local m = call('HMGET', META, 'next_wake', 'uses', 'high')
local next_wake, uses, high = m[1] and m[1] + 0, m[2], m[3] and m[3] + 0 or 0
if (uses and string.find(uses, 's', 1, true)) then
  return { err = 'SHARDED holdfast: ' .. (call('HGET', META, 'shards') or '') }
end
local codes
local SCHEDULE = P .. 'schedule'
local RUNNING = P .. 'running'
local DEAD = P .. 'dead'
local sets, beside, others = call('EXISTS', SCHEDULE, RUNNING, DEAD), (uses and string.find(uses, '[lu]')), nil
if beside then
  local LEVELS_BEHIND = { ':h', '', ':l' }
  local function levels(but_the_usual)
    local sets = {}
    for _, behind in ipairs(LEVELS_BEHIND) do
      sets[#sets + 1] = (behind ~= '' or not but_the_usual) and SCHEDULE .. behind or nil
    end
    return sets
  end
  others = (uses and string.find(uses, 'l', 1, true)) and levels(true) or {}
  others[#others + 1] = (uses and string.find(uses, 'u', 1, true)) and P .. 'parked' or nil
end
if sets > 0 or beside then
  local ids, set, code = {}, SCHEDULE, (-1)
  for k = 1, n do
    ids[k] = args[3 + 3 * k]
  end
  for place = 1, others and 3 + #others or 3 do
    if n == 1 then -- a command whose answer is no table
      codes = call('ZSCORE', set, ids[1]) and { code } or codes
    elseif n < 8 or sets == 3 or call('EXISTS', set) == 1 then
      for from = 1, n, 3000 do
        local to = from + 3000 - 1
        local scores = call('ZMSCORE', set, unpack(ids, from, to < n and to or n))
        for k = 1, #scores do
          if scores[k] then
            codes = codes or {}
            codes[from + k - 1] = code
          end
        end
      end
    end
    if place == 1 then
      set, code = RUNNING, (-6)
    elseif place == 2 then
      set, code = DEAD, (-7)
    elseif others then
      set, code = others[place - 2], (-1)
    end
  end
end
local JOBS = P .. 'jobs'
local OF_PRIORITY = { high = ':h', low = ':l' }
local function level_of(priority)
  return SCHEDULE .. (priority and OF_PRIORITY[priority] or '')
end
if codes and (uses and string.find(uses, 'x', 1, true)) then
  local waits = {} -- also for its later mentions, though a job that was parked may be late by then
  local WAKE = P .. 'wake'
  local function open_writes()
    call('ZREM', WAKE, '')
  end
  local LEVELS_BEHIND = { ':h', '', ':l' }
  local function levels(but_the_usual)
    local sets = {}
    for _, behind in ipairs(LEVELS_BEHIND) do
      sets[#sets + 1] = (behind ~= '' or not but_the_usual) and SCHEDULE .. behind or nil
    end
    return sets
  end
  local UNIQUE, WINDOWS, PARKED = P .. 'unique', P .. 'windows', P .. 'parked'
  local function entry_of(value)
    value = string.gsub(value or '', '^%S+$', '%0 e 0 0')
    local id, keeps, window, first, parked = string.match(value, '^(%S+) (%l) (%d+) (%d+) ?(%S*)$')
    return id and { id = id, keeps = keeps, window = window + 0, first = first + 0, parked = parked }
  end
  local EXPIRES = P .. 'expires'
  local function levels_used(uses)
    return (uses and string.find(uses, 'l', 1, true)) and levels() or { SCHEDULE }
  end
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
  local VOIDS = { cancelled = true, deleted = true, purged = true }
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
  local function is_late(id)
    local by = call('ZSCORE', EXPIRES, id)
    return by and by + 0 <= now
  end
  for k = 1, n do -- in this order: of an id that is named twice the first counts
    local id = args[3 + 3 * k]
    if codes[k] == (-1) and not waits[id] and not is_late(id) then
      waits[id] = true
    elseif codes[k] == (-1) and not waits[id] then
      open_writes()
      local dying = expire({ id }, { call('ZSCORE', EXPIRES, id) })
      codes[k] = #dying > 0 and (-7) or nil
      words[2] = true -- how it ended is told now
    end
  end
end

-- 1. Read the options of each job.
local records, times, heads, new, last, taken, soonest, big = {}, {}, {}, 0, '', nil, math.huge, false
local options_of, homes, expiring, usual, starting, awaiting = {}, nil, false, true, false, codes
local named, entries, keyed, conflicts = {}, {}, 0, nil -- unique keys; {key, id, ...}
local awaited, died -- {place, accepted, ...}; the id of a dead job is taken
local revived = {} -- ids of dead jobs that new ones replace; they end as deleted
for k = 1, n do
  local i = 3 + 3 * k
  local id, due, record = args[i], args[i + 1], args[i + 2]
  local known = codes and codes[k]
  if known == (-7) and string.find(record, '^[^\n]*"replace_dead":%s*1') then
    known, codes[k] = nil, nil
    if not revived[id] then
      revived[#revived + 1], revived[id] = id, true
    end
  end
  if not known and (taken or id <= last) then -- while ids rise none is named twice
    if not taken then
      taken = {}
      for j = 1, 2 * new, 2 do
        taken[records[j]] = true
      end
    end
    known = taken[id]
    if known then
      codes = codes or {}
      codes[k] = (-1)
    end
    taken[id] = true
  end
  if not known then
    if due == '0' then
      due, soonest = stamp, now
    else
      local at = due + 0
      if at <= 0 then
        at = now + math.max(0, -at - ARGV[5])
        due = at
      end
      soonest = math.min(soonest, math.max(at, now))
    end
    local key = string.match(record, '^{"unique":"([^"\\]*)",')
    local line = string.sub(record, key and #key + 14 or 1, (string.find(record, '\n', 1, true) or 0) - 1)
    local options = options_of[line]
    if not options then
      options = cjson.decode(key and '{' .. line or line)
      if options.priority then
        homes = homes or {}
        homes[options] = level_of(options.priority)
      end
      options_of[line], expiring = options, expiring or options.start_within
      awaiting = awaiting or options.awaited
      usual = usual and not (options.unique_until or options.unique_for or options.debounce or options.throttle)
      starting = starting or options.unique_until == 'start' or options.debounce
    end
    key = options.unique or key
    local j = 2 * new + 1
    records[j], records[j + 1] = id, record
    times[j], times[j + 1] = due, id
    new, last, big = new + 1, id, big or #record > BIG_BYTES
    heads[new] = options
    if key then
      keyed = keyed + 1
      named[keyed], entries[2 * keyed - 1], entries[2 * keyed] = key, key, id
    end
  end
end
if codes then
  local refused = false
  for k = 1, n do
    local at = math.min(k, #made)
    refused = refused or codes[k] and string.find(made, '^[nN]', at)
    died = died or codes[k] == (-7)
    codes[k] = codes[k] or 0
  end
  if refused then
    return { (-1), now, 0, codes }
  end
end
if #revived > 0 then
  local UNIQUE, WINDOWS, PARKED = P .. 'unique', P .. 'windows', P .. 'parked'
  local function entry_of(value)
    value = string.gsub(value or '', '^%S+$', '%0 e 0 0')
    local id, keeps, window, first, parked = string.match(value, '^(%S+) (%l) (%d+) (%d+) ?(%S*)$')
    return id and { id = id, keeps = keeps, window = window + 0, first = first + 0, parked = parked }
  end
  local EXPIRES = P .. 'expires'
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
  local VOIDS = { cancelled = true, deleted = true, purged = true }
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
  for i = 1, #revived, 1000 do
    leave('deleted', { unpack(revived, i, math.min(i + 999, #revived)) }, DEAD)
  end
  words[2], conflicts = true, {} -- its end is no word on the new one; another job may wait now
end

local heeded
-- 2. Put the new ones where they belong.
if now < high then
  call('HSET', META, 'high', m[3]) -- changes nothing, but a full Redis refuses it, and so all
  local WAKE = P .. 'wake'
  local function open_writes()
    call('ZREM', WAKE, '')
  end
  local LEVELS_BEHIND = { ':h', '', ':l' }
  local function levels(but_the_usual)
    local sets = {}
    for _, behind in ipairs(LEVELS_BEHIND) do
      sets[#sets + 1] = (behind ~= '' or not but_the_usual) and SCHEDULE .. behind or nil
    end
    return sets
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
  local function after_delay(due)
    heeded = heeded or heed_clock(tonumber(call('HGET', META, 'high') or 0), 100)
    local to = heeded + 100
    return now < heeded and due > now and due <= to and to + 1 or due
  end
  for j = 1, 2 * new, 2 do
    times[j] = times[j] ~= stamp and string.format('%d', after_delay(times[j] + 0)) or stamp
  end
end
local first, upto = 1, new -- those that are left
if keyed > 0 then
  local held, plain = {}, usual and now >= high
  local UNIQUE, WINDOWS, PARKED = P .. 'unique', P .. 'windows', P .. 'parked'
  for from = 1, keyed, 3000 do
    local values = call('HMGET', UNIQUE, unpack(named, from, math.min(from + 3000 - 1, keyed)))
    for i = 1, #values do
      local key = named[from + i - 1]
      plain = plain and not values[i] and held[key] == nil -- not named twice
      held[key] = values[i]
    end
  end
  if plain then
    for i = 1, 2 * keyed, 3000 do
      call('HSET', UNIQUE, unpack(entries, i, math.min(i + 3000 - 1, 2 * keyed)))
    end
  else
    local places, answers, is_answer = {}, codes or {}, false
    for k = 1, n do
      if not codes or codes[k] == 0 then
        places[#places + 1] = k
      end
    end
    local keys = {} -- by id
    for i = 1, 2 * keyed, 2 do
      keys[entries[i + 1]] = entries[i]
    end
    local taken, left, there, windows = {}, 0, 0, 0
    local EXPIRES = P .. 'expires'
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
    local function start_by(within, due)
      within = tonumber(within)
      return within and string.format('%d', math.min(253402300799999, math.max(due + 0, now) + within))
    end
    local function put()
      for i = 1, #taken, 3000 do
        call('HSET', UNIQUE, unpack(taken, i, math.min(i + 3000 - 1, #taken)))
      end
      if left > there then
        local first, upto = there + 1, left
        if expiring then
          local ends, within, due, by = {}, nil, nil, nil
          for k = first, upto do
            local own_within, own_due = heads[k].start_within, times[2 * k - 1]
            if own_within then
              if own_within ~= within or own_due ~= due then -- mostly they are those of the job before
                within, due, by = own_within, own_due, start_by(own_within, own_due)
              end
              if by then
                local j = #ends
                ends[j + 1], ends[j + 2] = by, times[2 * k]
                records[2 * k] = with_start_by(records[2 * k], by)
              end
            end
          end
          for i = 1, #ends, 3000 do
            call('ZADD', EXPIRES, unpack(ends, i, math.min(i + 3000 - 1, #ends)))
          end
          if #ends > 0 and not (uses and string.find(uses, 'x', 1, true)) then
            note_use('x', true)
          end
        end
        for i = 2 * first - 1, 2 * upto, 3000 do
          local to = math.min(i + 3000 - 1, 2 * upto)
          call('HSET', JOBS, unpack(records, i, to))
          if not homes then
            call('ZADD', SCHEDULE, unpack(times, i, to))
          end
        end
        if homes then
          local lists = {} -- by set
          for k = first, upto do
            local home = homes[heads[k]] or SCHEDULE
            local list = lists[home] or {}
            local j = #list
            list[j + 1], list[j + 2], lists[home] = times[2 * k - 1], times[2 * k], list
          end
          local levelled = false
          for set, list in pairs(lists) do
            for i = 1, #list, 3000 do
              call('ZADD', set, unpack(list, i, math.min(i + 3000 - 1, #list)))
            end
            levelled = levelled or set ~= SCHEDULE
          end
          if levelled and not (uses and string.find(uses, 'l', 1, true)) then
            note_use('l', true)
          end
        end
      end
      taken, there = {}, left
    end
    soonest = math.huge
    local WAKE = P .. 'wake'
    local function open_writes()
      call('ZREM', WAKE, '')
    end
    local LEVELS_BEHIND = { ':h', '', ':l' }
    local function levels(but_the_usual)
      local sets = {}
      for _, behind in ipairs(LEVELS_BEHIND) do
        sets[#sets + 1] = (behind ~= '' or not but_the_usual) and SCHEDULE .. behind or nil
      end
      return sets
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
    local function after_delay(due)
      heeded = heeded or heed_clock(tonumber(call('HGET', META, 'high') or 0), 100)
      local to = heeded + 100
      return now < heeded and due > now and due <= to and to + 1 or due
    end
    local conflicts_met = {}
    local function is_taken(id)
      return string.find(id, '%.dead[%d%.]*$') and call('HGET', JOBS, id)
    end
    local function due_of(head, due, first)
      return head.debounce and after_delay(math.min(now + head.debounce, first + head.max_wait)) or due
    end
    local function entry_of(value)
      value = string.gsub(value or '', '^%S+$', '%0 e 0 0')
      local id, keeps, window, first, parked = string.match(value, '^(%S+) (%l) (%d+) (%d+) ?(%S*)$')
      return id and { id = id, keeps = keeps, window = window + 0, first = first + 0, parked = parked }
    end
    local function read_key(key)
      local value = call('HGET', UNIQUE, key)
      local e = entry_of(value)
      return value, e, e and e.window > 0 and call('ZSCORE', WINDOWS, key)
    end
    local function levels_used(uses)
      return (uses and string.find(uses, 'l', 1, true)) and levels() or { SCHEDULE }
    end
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
    local VOIDS = { cancelled = true, deleted = true, purged = true }
    local function text_of(e)
      if e.window == 0 and e.first == 0 and (e.parked or '') == '' then
        return e.keeps == 'e' and e.id or e.id .. ' ' .. e.keeps .. ' 0 0' -- to format numbers takes long
      end
      local text = string.format('%s %s %.0f %.0f', e.id, e.keeps, e.window, e.first)
      return e.parked and e.parked ~= '' and text .. ' ' .. e.parked or text
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
    local LOCK = P .. 'lock:'
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
    local function waits_in(id)
      for _, set in ipairs(levels()) do
        local score = call('ZSCORE', set, id)
        if score then
          return set, score
        end
      end
    end
    local function holds(e)
      local set = waits_in(e.id)
      if set then
        return (-1), set
      elseif call('ZSCORE', RUNNING, e.id) then
        return e.keeps ~= 's' and (-6) or nil
      elseif call('ZSCORE', DEAD, e.id) then
        return e.keeps == 'd' and (-7) or nil
      end
    end
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
          return e, (-3)
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
    local function met(k, how, id, state)
      local n = #conflicts_met
      conflicts_met[n + 1], conflicts_met[n + 2] = k, how
      conflicts_met[n + 3], conflicts_met[n + 4] = id, state
      return how == 'parked' and 0 or (-1)
    end
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
        note_use('x', true)
      end
      if home ~= SCHEDULE then
        note_use('l', true)
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
    local function take_key(job)
      local head, key = job.head, job.key
      local mode = head.debounce and 'replace' or head.on_conflict or 'skip'
      call('HINCRBY', META, 'enqueued', '0') -- a full Redis refuses this, and so all
      local e, state, set = holder_of(key)
      if is_taken(job.id) then
        return nil, (-1)
      elseif e and mode == 'skip' then
        return nil, met(job.place, 'skipped', e.id, state)
      elseif state == (-1) and mode == 'replace' then
        replace(e, set, key, job)
        return nil, met(job.place, 'replaced', e.id, (-1))
      elseif e and state ~= (-3) then
        local parked = park(e, key, job)
        if mode == 'cancel' and state == (-6) then
          ask_to_cancel(e.id)
        end
        if parked then
          return nil, met(job.place, 'replaced', parked, (-14))
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
    for k = 1, new do
      local id, record, head, due = records[2 * k - 1], records[2 * k], heads[k], times[2 * k - 1]
      local key, text, code = keys[id], nil, nil
      if key and held[key] then -- also by a job of this request, which has to be there now
        put()
        local job = { id = id, head = head, key = key, record = record, due = due + 0, place = places[k] }
        text, code = take_key(job)
        due = string.format('%.0f', job.due)
      elseif is_taken(id) then
        code = (-1)
      elseif key then
        held[key] = true
        local plain = not (head.debounce or head.unique_for or head.throttle)
        due = plain and due or due_of(head, due, now)
        text = text_of({ id = id, keeps = keeps_of(head), window = plain and 0 or window_of(head, now),
          first = head.debounce and now or 0 })
      end
      if code then
        answers[places[k]] = code
        is_answer = true
      else
        left = left + 1
        if left < k then
          records[2 * left - 1], records[2 * left], heads[left] = id, record, head
        end
        times[2 * left - 1], times[2 * left] = due, id
        soonest = due == stamp and math.min(soonest, now) or math.min(soonest, due + 0)
        if key then
          taken[#taken + 1], taken[#taken + 2] = key, text
          windows = windows + ((head.unique_for or head.throttle) and 1 or 0)
        end
      end
    end
    put()
    if windows > 0 then
      local function end_windows(most)
        local over = call('ZRANGEBYSCORE', WINDOWS, '-inf', stamp, 'LIMIT', 0, math.min(most, 3000))
        if #over > 0 then
          call('HDEL', UNIQUE, unpack(over))
          call('ZREM', WINDOWS, unpack(over))
        end
      end
      end_windows(2 * windows + 100)
    end
    new, first, upto = left, 1, 0
    if is_answer then
      codes, conflicts = answers, #conflicts_met > 0 and conflicts_met or conflicts
      for k = 1, n do
        codes[k] = codes[k] or 0
      end
      if ARGV[1] ~= '' then
        local answer = P .. 'answer:' .. ARGV[1] .. ':' .. ARGV[2]
        call('SET', answer, cjson.encode({ codes, conflicts }), 'PX', ARGV[4])
      end
    end
  end
  if not (uses and string.find(uses, 'u', 1, true)) then
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
    note_use('u', true)
  end
  if starting and not (uses and string.find(uses, 'f', 1, true)) then
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
    note_use('f', true)
  end
end
if expiring then
  local ends, within, due, by = {}, nil, nil, nil
  local function with_start_by(record, by)
    return '{"start_by":' .. by .. ',' .. string.sub(record, 2)
  end
  local function start_by(within, due)
    within = tonumber(within)
    return within and string.format('%d', math.min(253402300799999, math.max(due + 0, now) + within))
  end
  for k = first, upto do
    local own_within, own_due = heads[k].start_within, times[2 * k - 1]
    if own_within then
      if own_within ~= within or own_due ~= due then -- mostly they are those of the job before
        within, due, by = own_within, own_due, start_by(own_within, own_due)
      end
      if by then
        local j = #ends
        ends[j + 1], ends[j + 2] = by, times[2 * k]
        records[2 * k] = with_start_by(records[2 * k], by)
      end
    end
  end
  local EXPIRES = P .. 'expires'
  for i = 1, #ends, 3000 do
    call('ZADD', EXPIRES, unpack(ends, i, math.min(i + 3000 - 1, #ends)))
  end
  if #ends > 0 and not (uses and string.find(uses, 'x', 1, true)) then
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
    note_use('x', true)
  end
end
for i = 2 * first - 1, 2 * upto, 3000 do
  local to = math.min(i + 3000 - 1, 2 * upto)
  call('HSET', JOBS, unpack(records, i, to))
  if not homes then
    call('ZADD', SCHEDULE, unpack(times, i, to))
  end
end
if homes then
  local lists = {} -- by set
  for k = first, upto do
    local home = homes[heads[k]] or SCHEDULE
    local list = lists[home] or {}
    local j = #list
    list[j + 1], list[j + 2], lists[home] = times[2 * k - 1], times[2 * k], list
  end
  local levelled = false
  for set, list in pairs(lists) do
    for i = 1, #list, 3000 do
      call('ZADD', set, unpack(list, i, math.min(i + 3000 - 1, #list)))
    end
    levelled = levelled or set ~= SCHEDULE
  end
  if levelled and not (uses and string.find(uses, 'l', 1, true)) then
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
    note_use('l', true)
  end
end
if awaiting then
  local others = {} -- by place: the job that stands for it, and its state
  for i = 1, conflicts and #conflicts or 0, 4 do
    if conflicts[i + 1] ~= 'parked' then
      others[conflicts[i]] = { conflicts[i + 2], conflicts[i + 3] }
    end
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
  local WAITS = P .. 'waits'
  local function end_of(id, accepted)
    return P .. 'ended:@' .. accepted .. ':' .. id
  end
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
  for k = 1, n do
    if string.find(args[5 + 3 * k], '^[^\n]*"awaited":%s*1') then
      local other = others[k] or { args[3 + 3 * k], codes and codes[k] }
      local gone = other[2] == (-7) or other[2] == (-3)
      awaited = awaited or {}
      awaited[#awaited + 1] = k
      awaited[#awaited + 1] = gone and 0 or note_wait(other[1], '*', nil, true) + 0
    end
  end
  if awaited and ARGV[1] ~= '' then
    local answer = P .. 'answer:' .. ARGV[1] .. ':' .. ARGV[2]
    call('SET', answer, cjson.encode({ codes or {}, conflicts or {}, awaited }), 'PX', ARGV[4])
  end
end
if words[2] then -- how an earlier job of this id ended is no word on the new one
  for j = 1, 2 * new, 2 do
    call('DEL', P .. 'ended:' .. records[j])
  end
end
if (uses and string.find(uses, 'k', 1, true)) then
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
  for from = 1, 2 * new, 4000 do
    local ids = {}
    for j = from, math.min(from + 3999, 2 * new), 2 do
      ids[#ids + 1] = records[j]
    end
    forget_kept(ids)
  end
end
if died and ARGV[1] ~= '' and not awaited then -- sent again, it is told again
  local answer = P .. 'answer:' .. ARGV[1] .. ':' .. ARGV[2]
  call('SET', answer, cjson.encode({ codes, conflicts or {} }), 'PX', ARGV[4])
end
if ARGV[1] ~= '' then
  call('SET', SEEN, highest .. ':' .. bits, 'PX', ARGV[4])
end
if new > 0 then
  call('HINCRBY', META, 'enqueued', new == 1 and '1' or new)
  if big then
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
    note_use('b', true)
  end
end
if new == 0 and not conflicts then
  return { 0, now, 0, codes, awaited and {}, awaited }
elseif now > high + 100 and new > 0 then
  call('HSET', META, 'high', stamp)
end

if conflicts or (uses and string.find(uses, '[npr]')) or soonest > now and next_wake and next_wake <= now then
  local WAKE = P .. 'wake'
  local function open_writes()
    call('ZREM', WAKE, '')
  end
  local LEVELS_BEHIND = { ':h', '', ':l' }
  local function levels(but_the_usual)
    local sets = {}
    for _, behind in ipairs(LEVELS_BEHIND) do
      sets[#sets + 1] = (behind ~= '' or not but_the_usual) and SCHEDULE .. behind or nil
    end
    return sets
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
  local EXPIRES = P .. 'expires'
  local function levels_used(uses)
    return (uses and string.find(uses, 'l', 1, true)) and levels() or { SCHEDULE }
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
  wake(read_meta())
else
  local at, doubted = soonest, false
  if not at then
    if next_wake then
      local WAKE = P .. 'wake'
      call('DEL', WAKE)
      call('HDEL', META, 'next_wake')
    end
    next_wake = nil
  elseif doubted or not next_wake or next_wake > at
    or next_wake < (at > now and now + 1 or now - 100) then
    local text = at <= now and stamp or string.format('%d', at)
    local WAKE = P .. 'wake'
    call('ZADD', WAKE, at <= now and '0' or text, 'baton')
    call('HSET', META, 'next_wake', text)
    next_wake = at
  end
end
return { 0, now, 0, codes or {}, conflicts or awaited and {}, awaited }
