-- record.lua - the line of a record.

-- Its fields; nil: it cannot be read.
local function head_of(record)
  local nl = string.find(record, '\n', 1, true)
  local ok, head = pcall(cjson.decode, nl and string.sub(record, 1, nl - 1) or '')
  return ok and type(head) == 'table' and head or nil
end

-- The key in the line of a record, and its fields; nil: it has none. Most lines are not decoded.
local function key_of(record)
  record = record or ''
  local line = string.sub(record, 1, (string.find(record, '\n', 1, true) or 0) - 1)
  local head = string.find(line, '"unique"', 1, true) and head_of(line .. '\n')
  if head and type(head.unique) == 'string' then
    return head.unique, head
  end
end

-- A record is a line of JSON, a newline, the payload. Changes fields of the line; the payload
-- stays as it is. A line that cannot be read, or not be written again (1e999), is replaced.
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

-- A record that tells when its job expires.
local function with_start_by(record, by)
  return '{"start_by":' .. by .. ',' .. string.sub(record, 2)
end

-- Whether a character goes on at this byte.
local function goes_on(text, at)
  return at <= #text and bit.band(string.byte(text, at), 0xC0) == 0x80
end

-- At most `most` bytes of an error, and no part of a character: its end, where a trace names what happened. Of
-- a longer last line its beginning and its end.
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

-- An attempt of this worker has failed now, after this many ms.
local function note_attempt(head, worker, ran, text)
  local list = type(head.history) == 'table' and head.history or {}
  while #list > 9 do
    table.remove(list, 1)
  end
  list[#list + 1] = { at = now, worker = worker, ran = ran, error = cut(text, 256) }
  head.attempts, head.history = (head.attempts or 0) + 1, list
end

-- A time in Unix ms as `2030-01-31T08:00:00.000Z`. Its years begin in March, so a leap day is the last of one.
local function date_of(ms)
  local days = floor(ms / 86400000) + 719468 -- since 0000-03-01
  local era = floor(days / 146097)
  local day = days - era * 146097
  local year = floor((day - floor(day / 1460) + floor(day / 36524) - floor(day / 146096)) / 365)
  day = day - (365 * year + floor(year / 4) - floor(year / 100))
  local month = floor((5 * day + 2) / 153)
  day = day - floor((153 * month + 2) / 5) + 1
  month = month < 10 and month + 3 or month - 9
  year = year + era * 400 + (month <= 2 and 1 or 0)
  local s = floor(ms / 1000) % 86400
  return string.format('%04d-%02d-%02dT%02d:%02d:%02d.%03dZ', year, month, day, floor(s / 3600),
    floor(s / 60) % 60, s % 60, ms % 1000)
end

-- A score as a time that can be answered; other hands may have written one that is none.
local function time_of(score)
  return math.max(-TIME_MAX, math.min(TIME_MAX, score))
end

-- The field `alone` of a record: with this number the next run has its process to itself.
local ALONE = 3
