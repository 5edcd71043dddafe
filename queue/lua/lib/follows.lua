-- follows.lua - which job a parked one follows.

-- The id of the holder of its unique key; '' : it is not parked, or its key does not name it.
local function job_before(place, id, record)
  local key = place == 'parked' and key_of(record)
  local e = key and entry_of(call('HGET', UNIQUE, key))
  return e and e.parked == id and e.id or ''
end
