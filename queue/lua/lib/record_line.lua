-- record_line.lua - whether every reader understands the line of a record: a worker buries a job whose line it
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
