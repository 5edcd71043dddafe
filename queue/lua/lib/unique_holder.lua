-- unique_holder.lua - who holds a key.

-- Where the holder is: EXISTS (it waits, in that set), RUNS, IS_DEAD; nil: it does not hold the key.
local function holds(e)
  local set = waits_in(e.id)
  if set then
    return EXISTS, set
  elseif call('ZSCORE', RUNNING, e.id) then
    return e.keeps ~= 's' and RUNS or nil
  elseif call('ZSCORE', DEAD, e.id) then
    return e.keeps == 'd' and IS_DEAD or nil
  end
end

-- The text and the entry of a key, and whether its holder has ended: only the window is left then, and
-- another job may have the id of the holder meanwhile.
local function read_key(key)
  local value = call('HGET', UNIQUE, key)
  local e = entry_of(value)
  return value, e, e and e.window > 0 and call('ZSCORE', WINDOWS, key)
end

-- The entry of a key that is taken, and the state of its holder; GONE: only its window holds it. A key
-- whose holder has been lost is healed, and counted.
local function holder_of(key)
  for _ = 1, 3 do -- freed, the key may belong to a parked job, and this one be gone too
    local value, e, ended = read_key(key)
    local state, set = nil, nil
    if e and e.parked ~= '' and expire_late(e.parked) then
      value, e, ended = read_key(key)
    end
    if e and not ended and expire_late(e.id) then
      value, e, ended = read_key(key)
    end
    if e and not ended then
      state, set = holds(e)
    end
    if state then
      return e, state, set
    elseif e and e.window > now then
      return e, GONE
    elseif not value then
      return nil
    end
    if not ended then
      count('healed', 1)
    end
    if e then
      free_key(key, e, true)
    else
      call('HDEL', UNIQUE, key)
    end
  end
end
