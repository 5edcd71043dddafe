-- expiry.lua - waiting jobs that expire.

-- When a waiting job expires. While a job waits for its first start, `start_by` in its
-- record is that time, and the score of its id in EXPIRES. A job that has started never expires.

-- The time for a job with this `start_within` in its record, first due then; nil: it never expires.
local function start_by(within, due)
  within = tonumber(within)
  return within and string.format('%d', math.min(TIME_MAX, math.max(due + 0, now) + within))
end

-- Whether the time of an id is over; then it is gone, though it may still wait.
local function is_late(id)
  local by = call('ZSCORE', EXPIRES, id)
  return by and by + 0 <= now
end

-- When it expired; and if it is going to be dead, its record as it will be then, else nil.
local function as_expired(id, record)
  local at, line = call('ZSCORE', EXPIRES, id) + 0, string.match(record, '^[^\n]*')
  if not string.find(line, '"expired":%s*"dead"') then
    return at
  end
  return at, rewrite(record, function(head)
    head.reason, head.error = 'expired', string.format('it did not start within %gs', head.start_within / 1000)
  end)
end

-- Of these ids in EXPIRES, with their scores, those that wait, or are parked, and whose record agrees leave. A
-- parked one must not follow another of them: expire_all() gives it first. Returns
-- {{id, set, record}, ...} of those that have to die, and the bytes of all records.
local function expire(ids, times)
  local uses = call('HGET', META, 'uses') or ''
  local keyed = has(uses, UNIQUE_KEYS)
  local sets, over, keys, dying, strange, bytes = {}, {}, {}, {}, {}, 0
  local places = levels_used(uses)
  places[#places + 1] = keyed and P .. 'parked' or nil
  for _, set in ipairs(places) do
    over[set], keys[set] = {}, {}
    for k, score in ipairs(call('ZMSCORE', set, unpack(ids))) do
      sets[k] = sets[k] or score and set
    end
  end
  for k, record in ipairs(call('HMGET', JOBS, unpack(ids))) do
    local text, set = record or '', sets[k]
    local line = string.sub(text, 1, (string.find(text, '\n', 1, true) or 0) - 1)
    local by = tonumber(string.match(line, '"start_by":%s*(%d+)') or nil)
    bytes = bytes + #text
    if not set or by ~= times[k] + 0 then
      strange[#strange + 1] = ids[k]
    elseif string.find(line, '"expired":%s*"dead"') then
      dying[#dying + 1] = { ids[k], set, record }
    else
      local n = #over[set] + 1
      over[set][n], keys[set][n] = ids[k], keyed and (key_of(line) or '')
    end
  end
  for set, members in pairs(over) do
    leave('expired', members, set, nil, keyed and keys[set])
  end
  if #strange > 0 then
    call('ZREM', EXPIRES, unpack(strange))
  end
  return dying, bytes
end

-- A script takes slices of AT_ONCE until it has come to one of these bounds: it takes 1 to 2 ms. One that dies
-- takes longer, because its record is written anew; and so do large records.
local EXPIRE_MAX, DEATHS_MAX, EXPIRE_BYTES, AT_ONCE = 200, 50, 196608, 25

-- As expire_all, for ids that follow no other one.
local function expire_some(ids, times, buried)
  local dying, bytes = expire(ids, times)
  for k = 1, #dying do
    local id, set, record = unpack(dying[k])
    local within = tonumber(string.match(record, '"start_within":%s*(%d+)') or 0)
    put_away(buried, set, id, record, 'expired', string.format('it did not start within %gs', within / 1000))
  end
  count('expired', #dying) -- the door counts no deaths
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
  local large, n = has(uses, LARGE), nil
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
