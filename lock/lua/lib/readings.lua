-- readings.lua - the readings of a line's clock, in the field `@<machine>` of its hash (lib/evidence.lua).

-- What the caller shows counts if it was read of this line, not of an earlier one of its name: fences of a tag
-- rise, so the number of such a reading is below this line's birth. It is written by keep().
local function heed(l, machine, boot, shown)
  local all = read_readings(call('HGET', l.e, '@' .. machine))
  l.machine, l.boot, l.readings, l.machine_is_new = machine, tonumber(boot), all, not all[1]
  if shown == '' or not l.birth then
    return
  end
  local oldest = tonumber(call('ZRANGE', l.x, 0, 0, 'WITHSCORES')[2] or 0)
  if add_reading(all, shown, function(number)
    return number >= tonumber(l.birth)
  end, l.clock, l.shortest, oldest) then
    l.changed, l.noted = true, true
  end
end

local function keep_readings(l)
  if not l.machine_is_new or make_room(l.e, call('ZCARD', l.x) + 1, '@', l.clock, l.shortest) then
    call('HSET', l.e, '@' .. l.machine, write_readings(l.readings))
  end
end

-- Whether the machine should read again.
local function wants_reading(l)
  local last = l.readings[#l.readings]
  return not last or math.abs(l.boot - last.boot) >= l.shortest / APART -- its boot clock may have been set back
end

-- How old the oldest reading is that came after this start; 0: there is none.
local function age_of(l, start)
  local age = 0
  for _, r in ipairs(l.readings or {}) do
    age = r.clock > start and math.max(age, age_at(l.boot, r)) or age
  end
  return age
end

-- By Redis's clock a lease is over, or begins after now; and no younger reading shows that it was renewed
-- since. Its client may be dead, or Redis's clock was set.
local function seems_over(l, start, lease)
  for _, r in ipairs(l.readings or {}) do
    if r.clock <= start and l.boot - r.boot < lease then
      return false
    end
  end
  return start + lease <= now or start > now
end
