-- unique_left.lua - jobs that end free their keys.
--- @include "lib/unique.lua"
local VOIDS = { cancelled = true, deleted = true, purged = true }

-- keys[k]: the key of ids[k]; voids: whatever was said, it is free now. True: a parked job waits now.
local function free_keys(how, ids, keys, voids)
  voids = voids or VOIDS[how]
  local plain, unparked = {}, false
  for k, value in ipairs(#keys > 0 and call('HMGET', UNIQUE, unpack(keys)) or {}) do
    local id, key = ids[k], keys[k]
    if value == id .. ' e 0 0' then
      plain[#plain + 1] = key
    elseif value then
      local e = entry_of(value) or {}
      if e.parked == id then
        e.parked = ''
        call('HSET', UNIQUE, key, text_of(e))
      elseif e.id == id and (voids or how ~= 'dead' or e.keeps ~= 'd') then
        unparked = unparked or e.parked ~= ''
        free(key, e, voids)
      end
    end
  end
  if #plain > 0 then
    call('HDEL', UNIQUE, unpack(plain))
  end
  return unparked
end

-- known: {ids, keys}; else their records tell the keys.
local function free_keys_of(how, ids, from, known, voids)
  if type(known) == 'table' then
    return free_keys(how, known[1], known[2])
  end
  local named, keys = {}, {}
  for k = from, #ids do
    local key = key_of(call('HGET', JOBS, ids[k]) or '')
    if key then
      named[#named + 1], keys[#keys + 1] = ids[k], key
    end
  end
  return free_keys(how, named, keys, voids)
end
