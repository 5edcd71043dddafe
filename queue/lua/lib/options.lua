-- options.lua - what the record of a new job may say.

-- The options of a job that the script which accepts it acts on: fields of its record's line.

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

-- A number of ms.
local function a_time(value)
  local good = type(value) == 'number' and value % 1 == 0 and value >= 1 and value <= DELAY_MAX
  return good, 'as its %s a whole number of ms from 1 to ' .. string.format('%.0f', DELAY_MAX)
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

-- Each with a function that tells whether a value of it is right, and what was expected.
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

-- The fields that Holdfast writes itself, and what a caller may have meant.
local RESERVED = {
  { 'attempts', 'max_attempts is the limit' }, { 'start_by', 'start_within is the option' },
  { 'reason' }, { 'history' }, { 'error' }, { 'failed' }, { 'refused' }, { 'unhandled' }, { 'died' },
  { 'cron' }, { 'scheduled' }, { 'alone' }, { 'failed_fence' },
}

-- What was expected of a new job's line instead of a field that Holdfast writes; nil: it has none.
local function reserved_field(head)
  for _, field in ipairs(RESERVED) do
    local name = field[1]
    if head[name] ~= nil then
      return 'no ' .. name .. ' in its record; ' .. (field[2] or 'Holdfast writes it')
    end
  end
end

-- The first option that is wrong, and what was expected; nil: all are as they should be.
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

-- As wrong_option.
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

local HEADERS_MAX = 4096 -- bytes of JSON, of the headers of a job

-- What was expected of them; nil: they are as they should be. line: of the record; head: what it says.
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
    if #object > HEADERS_MAX then
      return what
    end
  end
  return not found and what or nil -- an empty list
end

-- Whether every reader understands the line of a record: a worker buries a job whose line it
-- cannot read.
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

-- A number of JSON that 64 bits hold.
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

-- Redis's cjson takes more than JSON: 0x10, nan, 1e999, control characters, bytes that are no UTF-8.
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

-- The fields of a new job that are whole numbers, and their bounds.
local WHOLE = {
  { 'v', 1, 1 }, { 'created', 0, TIME_MAX }, { 'max_attempts', 1, 4294967295 }, { 'timeout', 1, 4294967295 },
  { 'keep', 1, DELAY_MAX },
}

-- Whether the line has this number as digits: a reader takes 5.0 and 5e0 for no whole number.
local function has_digits(line, name, value)
  for word in string.gmatch(line, '"' .. name .. '"%s*:%s*([^%s,}]+)') do
    if string.find(word, '^%d+$') and word + 0 == value then
      return true
    end
  end
end

-- What was expected of the line of a record, whose whole numbers are these `fields`; nil: it is as it should be.
-- And what it says.
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
