-- unique_left.lua - jobs that end free their keys.
--- @include "lib/key_unique.lua"

-- keys[k]: the key of ids[k]; voids: whatever was said, it is free now. True: a parked job waits now.
local function free_keys(how, ids, keys, voids)
  local plain, others = {}, nil
  for k, value in ipairs(#keys > 0 and call('HMGET', UNIQUE, unpack(keys)) or {}) do
    if value == ids[k] then
      plain[#plain + 1] = keys[k]
    elseif value then
      others = others or {}
      others[#others + 1] = k
    end
  end
  if #plain > 0 then
    call('HDEL', UNIQUE, unpack(plain))
  end
  if others then
    --- @include "lib/unique_free.lua"
    return free_others(how, ids, keys, voids, others)
  end
end

-- known: {ids, keys}; else their records tell the keys.
local function free_keys_of(how, ids, from, known, voids)
  if type(known) == 'table' then
    return free_keys(how, known[1], known[2], voids)
  end
  --- @include "lib/key_of.lua"
  local named, keys = {}, {}
  for k = from, #ids do
    local key = key_of(call('HGET', JOBS, ids[k]) or '')
    if key then
      named[#named + 1], keys[#keys + 1] = ids[k], key
    end
  end
  return free_keys(how, named, keys, voids)
end
