-- rewrite.lua - changes of records.

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
