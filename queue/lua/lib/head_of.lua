-- head_of.lua - the line of a record.

-- Its fields; nil: it cannot be read.
local function head_of(record)
  local nl = string.find(record, '\n', 1, true)
  local ok, head = pcall(cjson.decode, nl and string.sub(record, 1, nl - 1) or '')
  return ok and type(head) == 'table' and head or nil
end
