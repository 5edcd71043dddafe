-- key_of.lua - the unique key that a record names.

-- The key in the line of a record, and its fields; nil: it has none. Most lines are not decoded.
local function key_of(record)
  record = record or ''
  local line = string.sub(record, 1, (string.find(record, '\n', 1, true) or 0) - 1)
  local head = string.find(line, '"unique"', 1, true) and head_of(line .. '\n')
  if head and type(head.unique) == 'string' then
    return head.unique, head
  end
end
