-- expire_all.lua - waiting jobs whose time is over, of which some have to die.
--- @include "lib/expire.lua"
--- @include "lib/put_away.lua"
--- @include "lib/count.lua"
--- @include "lib/open_writes.lua"
--- @include "lib/that_fit.lua"

-- At most so many in a script, which takes 2 ms. One that dies takes longer, because its record is
-- written anew; and so do large records.
local EXPIRE_MAX, DEATHS_MAX, EXPIRE_BYTES = 400, 100, 1048576

-- These ids expire; `buried` is the list that a claim answers.
local function expire_all(ids, times, uses, buried)
  open_writes()
  local dying = expire(ids, times, uses)
  for k = 1, math.min(#dying, DEATHS_MAX) do
    local id, set, record = unpack(dying[k])
    local within = tonumber(string.match(record, '"start_within":%s*(%d+)') or 0)
    put_away(buried, set, id, record, 'expired', string.format('it did not start within %gs', within / 1000))
  end
  count('expired', math.min(#dying, DEATHS_MAX))
end

-- Those whose time is over, as many as one script may. Returns how many, and whether there are more.
local function expire_due(uses, buried)
  local found = call('ZRANGEBYSCORE', EXPIRES, '-inf', stamp, 'WITHSCORES', 'LIMIT', '0', EXPIRE_MAX)
  local ids, times = {}, {}
  for k = 1, #found / 2 do
    ids[k], times[k] = found[2 * k - 1], found[2 * k]
  end
  local n = #ids > 0 and string.find(uses, 'b', 1, true) and that_fit(ids, #ids, EXPIRE_BYTES, true)
  for k = #ids, (n or #ids) + 1, -1 do
    ids[k], times[k] = nil, nil
  end
  if #ids > 0 then
    expire_all(ids, times, uses, buried)
  end
  return #ids, #ids > 0 and call('ZCOUNT', EXPIRES, '-inf', stamp) > 0
end

-- One job, if its time is over; true: it is gone, or dead.
local function expire_late(id, uses)
  local by = call('ZSCORE', EXPIRES, id)
  if by and by + 0 <= now then
    expire_all({ id }, { by }, uses or '', {})
    return true
  end
end
