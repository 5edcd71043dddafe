-- unique_left.lua - jobs that end free their keys.

-- keys: of each of these ids, '': it has none; no table: their records tell them. True: a parked job waits now.
local function free_keys(how, ids, from, keys)
  if type(keys) ~= 'table' then
    keys = {}
    for k = from, #ids do
      keys[k - from + 1] = key_of(call('HGET', JOBS, ids[k])) or ''
    end
  end
  local plain, n, others = {}, 0, nil
  for k, value in ipairs(call('HMGET', UNIQUE, unpack(keys))) do
    if value == ids[from + k - 1] then
      n = n + 1
      plain[n] = keys[k]
    elseif value then
      others = others or {}
      others[#others + 1] = k
    end
  end
  if n > 0 then
    call('HDEL', UNIQUE, unpack(plain))
  end
  if others then
    return free_others(how, ids, from, keys, others)
  end
end
