-- expire_all.lua - waiting jobs whose time is over, of which some have to die.

-- A script takes slices of AT_ONCE until it has come to one of these bounds: it takes 1 to 2 ms. One that dies
-- takes longer, because its record is written anew; and so do large records.
local EXPIRE_MAX, DEATHS_MAX, EXPIRE_BYTES, AT_ONCE = 200, 50, 196608, 25

-- As expire_all, of ids none of which follows another one.
local function expire_some(ids, times, buried)
  local dying, bytes = expire(ids, times)
  for k = 1, #dying do
    local id, set, record = unpack(dying[k])
    local within = tonumber(string.match(record, '"start_within":%s*(%d+)') or 0)
    put_away(buried, set, id, record, 'expired', string.format('it did not start within %gs', within / 1000))
  end
  count('expired', #dying)
  return #dying, bytes
end

-- These ids expire; `buried` is the list that a claim answers. Returns how many died, and the bytes of all.
local function expire_all(ids, times, buried)
  local parked, others = { {}, {} }, { {}, {} }
  for k, score in ipairs(call('EXISTS', P .. 'parked') == 1 and call('ZMSCORE', P .. 'parked', unpack(ids)) or {}) do
    local list = score and parked or others
    list[1][#list[1] + 1], list[2][#list[2] + 1] = ids[k], times[k]
  end
  open_writes()
  if #parked[1] == 0 then
    return expire_some(ids, times, buried)
  end
  local died, bytes = expire_some(parked[1], parked[2], buried)
  if #others[1] > 0 then
    local more_died, more_bytes = expire_some(others[1], others[2], buried)
    died, bytes = died + more_died, bytes + more_bytes
  end
  return died, bytes
end

-- Those whose time is over, as many as one script may. Returns whether there are more.
local function expire_due(buried)
  local uses, gone, deaths, bytes = call('HGET', META, 'uses') or '', 0, 0, 0
  local large, n = string.find(uses, 'b', 1, true), nil
  repeat
    local found = call('ZRANGEBYSCORE', EXPIRES, '-inf', stamp, 'WITHSCORES', 'LIMIT', '0', AT_ONCE)
    local ids, times = {}, {}
    for k = 1, #found / 2 do
      ids[k], times[k] = found[2 * k - 1], found[2 * k]
    end
    n = large and that_fit(ids, #ids, EXPIRE_BYTES - bytes, gone == 0) or #ids
    if n > 0 then
      local died, read = expire_all({ unpack(ids, 1, n) }, times, buried)
      gone, deaths, bytes = gone + n, deaths + died, bytes + read
    end
  until n < AT_ONCE or gone >= EXPIRE_MAX or deaths >= DEATHS_MAX or bytes >= EXPIRE_BYTES
  return gone > 0 and call('ZCOUNT', EXPIRES, '-inf', stamp) > 0
end

-- One job, if its time is over; true: it is gone, or dead.
local function expire_late(id)
  local by = call('ZSCORE', EXPIRES, id)
  if by and by + 0 <= now then
    expire_all({ id }, { by }, {})
    return true
  end
end
