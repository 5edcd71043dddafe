-- note_attempt.lua - the last failed attempts of a job, in its record.

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

-- An attempt of this worker has failed now, after so many ms.
local function note_attempt(head, worker, ran, text)
  local list = type(head.history) == 'table' and head.history or {}
  while #list > 9 do
    table.remove(list, 1)
  end
  list[#list + 1] = { at = now, worker = worker, ran = ran, error = cut(text, 256) }
  head.attempts, head.history = (head.attempts or 0) + 1, list
end
