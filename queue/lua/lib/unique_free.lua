-- unique_free.lua - keys of jobs that end, where more is to be done than to forget them.

-- The ends that free a key at once, whatever its window says and even if it is held until the job is done:
-- a command asked for them.
local VOIDS = { cancelled = true, deleted = true, purged = true }

-- As free_keys, for those k in `others`.
local function free_others(how, ids, from, keys, others)
  local unparked, voids = false, VOIDS[how]
  for _, k in ipairs(others) do
    local id, key = ids[from + k - 1], keys[k]
    local e = entry_of(call('HGET', UNIQUE, key)) or {}
    if e.parked == id then
      e.parked = ''
      call('HSET', UNIQUE, key, text_of(e))
    elseif e.id == id and (how ~= 'dead' or e.keeps ~= 'd') then
      unparked = unparked or e.parked ~= ''
      free_key(key, e, voids)
    end
  end
  return unparked
end
