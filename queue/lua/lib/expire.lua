-- expire.lua - waiting jobs whose time is over leave.

-- Of these ids in EXPIRES, with their scores, those that wait, or are parked, and whose record agrees leave. A
-- parked one must not follow another of them: lib/expire_all.lua gives it first. Returns
-- {{id, set, record}, ...} of those that have to die, and the bytes of all records.
local function expire(ids, times)
  local uses = call('HGET', META, 'uses') or ''
  local keyed = string.find(uses, 'u', 1, true)
  local sets, over, keys, dying, strange, bytes = {}, {}, {}, {}, {}, 0
  local places = string.find(uses, 'l', 1, true) and levels() or { SCHEDULE }
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
