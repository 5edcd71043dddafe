-- unique_start.lua - jobs that start free keys that are held until then.

-- Mostly there are none: to look for them takes little. True: a parked job waits now.
local function free_at_start(ids, records, from, to)
  local some
  for k = from, to do
    local line = string.sub(records[k], 1, string.find(records[k], '\n', 1, true) or 0)
    if string.find(line, '"unique_until"', 1, true) or string.find(line, '"debounce"', 1, true) then
      some = some or {}
      some[#some + 1] = k
    end
  end
  if not some then
    return
  end
  local unparked = false
  for _, k in ipairs(some) do
    local key, head = key_of(records[k])
    local e = key and keeps_of(head) == 's' and entry_of(call('HGET', UNIQUE, key))
    if e and e.id == ids[k] then
      unparked = unparked or e.parked ~= ''
      free_key(key, e)
    end
  end
  return unparked
end
