-- expire.lua - waiting jobs whose time is over leave.
--- @include "lib/keys.lua"
--- @include "lib/key_expires.lua"
--- @include "lib/levels.lua"

-- They leave as expired. None has started, but a dead one that was requeued may have a checkpoint.
local function leave_late(ids, set)
  local how, from, locks, expiring, voids = 'expired', 1, nil, true, true
  local uses = call('HGET', META, 'uses')
  local marked = uses and string.find(uses, 'm', 1, true)
  local keyed, unparked = uses and string.find(uses, 'u', 1, true), nil
  --- @step "lib/leaving.lua"
end

-- Of these ids in EXPIRES, with their scores, those that wait and whose record agrees leave. Returns
-- {{id, set, record}, ...} of those that have to die. `uses` of meta tells whether there are levels.
local function expire(ids, times, uses)
  local sets, over, dying, strange = {}, {}, {}, {}
  for _, set in ipairs(string.find(uses, 'l', 1, true) and levels() or { SCHEDULE }) do
    over[set] = {}
    for k, score in ipairs(call('ZMSCORE', set, unpack(ids))) do
      sets[k] = sets[k] or score and set
    end
  end
  for k, record in ipairs(call('HMGET', JOBS, unpack(ids))) do
    local line = record and string.match(record, '^[^\n]*') or ''
    local by = tonumber(string.match(line, '"start_by":%s*(%d+)') or nil)
    if not sets[k] or by ~= times[k] + 0 then
      strange[#strange + 1] = ids[k]
    elseif string.find(line, '"expired":%s*"dead"') then
      dying[#dying + 1] = { ids[k], sets[k], record }
    else
      table.insert(over[sets[k]], ids[k])
    end
  end
  for set, members in pairs(over) do
    if #members > 0 then
      leave_late(members, set)
    end
  end
  if #strange > 0 then
    call('ZREM', EXPIRES, unpack(strange))
  end
  return dying
end
