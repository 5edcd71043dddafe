-- readings.lua - which leases of a queue are over, by readings of its clock (lib/evidence.lua). Nothing else ends a
-- lease. The clock is the field `clock` of meta; claims and renewals read it, and only readings move it. The hash
-- `readings` has those of each machine, and in `#` the number of this clock.

local READINGS_MS, JUDGED = 86400000, 1000

-- The first lease that is not known to be over: its end by the queue's clock; nil: none runs.
local function first_end()
  return tonumber(call('ZRANGEBYSCORE', RUNNING, '(0', '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2] or false)
end

-- Leases that end before this are over. Of each length the newest reading counts that is as old as it; where one
-- has none: nil.
local function judged_until(lengths, all, boot)
  local ended = math.huge
  for _, length in ipairs(lengths) do
    local clock
    for _, r in ipairs(all) do
      clock = age_at(boot, r) >= length and r.clock or clock
    end
    ended = clock and ended and math.min(ended, clock + length)
  end
  return ended
end

-- In how many ms a lease with this end can be judged. 0: not without another reading.
local function judged_in(ends_at, lengths, all, boot)
  local most = 0
  for _, length in ipairs(lengths) do
    local after
    for _, r in ipairs(all) do
      local left = r.clock > ends_at - length and length - age_at(boot, r) + 1
      after = left and math.min(after or left, left) or after
    end
    most = after and most and math.max(most, after)
  end
  return most and math.max(0, most) or 0
end

-- Those that are over get the score 0, and lose their locks: a claim takes them.
local function end_leases(before)
  local over = call('ZRANGEBYSCORE', RUNNING, '(0', '(' .. string.format('%.0f', before), 'LIMIT', 0, JUDGED)
  for _, id in ipairs(over) do
    call('ZADD', RUNNING, 'XX', '0', id)
    call('DEL', LOCK .. id)
  end
  return #over
end

-- When the last lease can have begun: before a reading, also if Redis's clock was ahead for a moment. A score
-- that no lease of today can have is of other hands: it is a lease that begins now.
local function last_start(longest, clock)
  local last = call('ZRANGE', RUNNING, -1, -1, 'WITHSCORES')
  while last[2] and last[2] + 0 > clock + DELAY_MAX do
    call('ZADD', RUNNING, 'XX', string.format('%.0f', clock + longest), last[1])
    last = call('ZRANGE', RUNNING, -1, -1, 'WITHSCORES')
  end
  return last[2] - longest
end

-- A machine reads the clock, and shows what it has read before. Returns {clock, number, after}: the reading, 0: no
-- lease runs; in how many ms one may be over, 0: not known; and how many were found to be over.
local function read_clock(machine, boot, shown)
  local key, ends_at = P .. 'readings', first_end()
  local lengths = call('ZRANGE', LEASES, 0, -1)
  if not ends_at or not lengths[1] then
    return { 0, 0, 0 }, 0
  end
  open_writes()
  local clock = tonumber(call('HGET', META, 'clock') or false)
  if not clock then
    call('DEL', key)
    note_use(CLOCK_READ, true)
    clock = 0
  end
  local found = call('HMGET', key, '#', machine)
  local number, all, shortest, longest = found[1] or time[1] .. micros, read_readings(found[2]), math.huge, 0
  for i, length in ipairs(lengths) do
    lengths[i] = length + 0
    shortest, longest = math.min(shortest, length + 0), math.max(longest, length + 0)
  end
  -- A lease that begins next may be a short one, which needs older readings than those that run.
  local is_new = add_reading(all, shown, function(of)
    return of == number + 0
  end, clock, shortest, math.min(ends_at, clock + shortest) - longest)
  local before = judged_until(lengths, all, boot)
  local over = before and ends_at < before and end_leases(before) or 0
  if over > 0 then
    ends_at = first_end()
  end
  local last = all[#all]
  -- While Redis's clock is behind, this one goes on at the usual speed: leases of different lengths could not be told
  -- apart otherwise.
  clock = math.max(now, clock + 1, last and last.clock + age_at(boot, last) or 0)
  clock = math.max(clock, last_start(longest, clock) + 1)
  call('HSET', META, 'clock', string.format('%.0f', clock))
  if (is_new or not found[1]) and (found[2] or make_room(key, 1, '', clock, longest)) then
    call('HSET', key, '#', number, machine, write_readings(all))
    call('PEXPIRE', key, READINGS_MS)
  end
  return { clock, number, ends_at and judged_in(ends_at, lengths, all, boot) or 0 }, over
end
