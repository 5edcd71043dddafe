-- unique_start.lua - jobs that start free keys that are held until then.
--- @include "lib/unique.lua"

local function free_at_start(ids, records, from, to)
  for k = from, to do
    local key, head = key_of(records[k])
    local e = key and keeps_of(head) == 's' and entry_of(call('HGET', UNIQUE, key))
    if e and e.id == ids[k] then
      free(key, e)
    end
  end
end
