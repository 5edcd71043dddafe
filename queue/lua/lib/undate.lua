-- undate.lua - leases of which this clock does not tell when they are over (check.lua).
--- @include "lib/keys.lua"
--- @include "lib/key_lock.lua"
--- @include "lib/bounds.lua"

local function leases(above, to)
  return call('ZRANGEBYSCORE', RUNNING, '(' .. above, to, 'LIMIT', 0, 1000)
end

-- The marked ones that end before that time: their scores are odd (lib/lease_end.lua).
local function marked_leases(before)
  local ids = {}
  local found = call('ZRANGEBYSCORE', RUNNING, '-inf', '(' .. before, 'WITHSCORES', 'LIMIT', 0, 1000)
  for i = 1, #found, 2 do
    if found[i + 1] % 2 ~= 0 then
      ids[#ids + 1] = found[i]
    end
  end
  return ids
end

-- The score of an undated lease, beyond all times.
local function undated(number)
  return string.format('%d', TIME_MAX + number)
end

-- Makes these leases undated. Their locks stay until that time; nil: as long as they did. Returns whether
-- there were any.
local function undate(ids, number, lock_end)
  for _, id in ipairs(ids) do
    call('ZADD', RUNNING, 'XX', undated(number), id)
    if lock_end then
      call('PEXPIREAT', LOCK .. id, lock_end)
    end
  end
  return #ids > 0
end
