-- note_attempt.lua - the last failed attempts of a job, in its record.

-- At most `most` bytes of a text, and no part of a character.
local function cut(text, most)
  local n = #text <= most and #text or most
  while n < #text and n > 0 and bit.band(string.byte(text, n + 1), 0xC0) == 0x80 do
    n = n - 1
  end
  return string.sub(text, 1, n)
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
