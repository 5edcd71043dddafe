-- key_of.lua - the unique key that a record names.
--- @include "lib/head_of.lua"

-- The key in the line of a record, and its fields; nil: it has none. Most lines are not decoded.
local function key_of(record)
  local line = string.match(record or '', '^[^\n]*')
  local head = line and string.find(line, '"unique"', 1, true) and head_of(line .. '\n')
  if head and type(head.unique) == 'string' then
    return head.unique, head
  end
end
