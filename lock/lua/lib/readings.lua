-- readings.lua - what a machine has read of a line's clock: the evidence that leases are over.
--
-- A reading moves the line's clock past all leases that began before (lib/line.lua). The client notes the time
-- of its machine's boot clock once the answer is there, and shows both with its next request, as
-- `number:clock:boot:redis`: the number is a fence that was given out by then, redis is Redis's time of
-- the answer. They stay in the field `@<machine>` of the line's hash, `clock:boot:redis ...`, the
-- oldest first. So they outlive the process, and serve all processes of the machine. A lease that
-- began before a reading is over when the reading is as old as the lease is long.
local READINGS, MACHINES, FORGET_MS = 32, 64, 3600000
local APART = 25 -- readings are a shortest lease / 25 apart

local function read_readings(text)
  local all = {}
  for clock, boot, redis in string.gmatch(text or '', '(%d+):(%d+):(%d+)') do
    all[#all + 1] = { clock = tonumber(clock), boot = tonumber(boot), redis = tonumber(redis) }
  end
  return all
end

-- Of more than READINGS that one goes which is missed least: old ones may be further apart than new ones.
local function forget_one(all)
  local least, least_gap = 2, math.huge
  for i = 2, #all - 1 do
    local gap = (all[i + 1].boot - all[i - 1].boot) / (all[#all].boot - all[i].boot + 1)
    if gap < least_gap then
      least, least_gap = i, gap
    end
  end
  table.remove(all, least)
end

-- Those from before all leases of the line prove nothing. The newest of them still shows that a holder has
-- renewed since.
local function forget_old(l, all)
  local oldest = tonumber(call('ZRANGE', l.x, 0, 0, 'WITHSCORES')[2] or 0)
  while all[2] and all[2].clock <= oldest do
    table.remove(all, 1)
  end
end

-- What the caller shows counts if it was read of this line, not of an earlier one of its name: fences of a tag
-- rise, so the number of such a reading is below this line's birth. It is written by keep().
local function heed(l, machine, boot, shown)
  local number, clock, at, redis = match(shown, '^(%d+):(%d+):(%d+):(%d+)$')
  local all = read_readings(call('HGET', l.e, '@' .. machine))
  local last = all[#all]
  l.machine, l.boot, l.readings, l.machine_is_new = machine, tonumber(boot), all, not last
  clock, at = tonumber(clock), tonumber(at)
  if number and l.birth and tonumber(number) >= tonumber(l.birth) and clock <= l.clock and
    not (last and (clock <= last.clock or at < last.boot + l.shortest / APART)) then
    all[#all + 1] = { clock = clock, boot = at, redis = tonumber(redis) }
    forget_old(l, all)
    if #all > READINGS then
      forget_one(all)
    end
    l.changed, l.noted = true, true
  end
end

-- Machines that have not asked for an hour give way to a new one.
local function forget_machines(l)
  if call('HLEN', l.e) - call('ZCARD', l.x) <= MACHINES then
    return
  end
  local all = call('HGETALL', l.e)
  for i = 1, #all, 2 do
    local last = string.sub(all[i], 1, 1) == '@' and tonumber(match(all[i + 1], '(%d+):%d+:%d+$') or 0)
    if last and last < l.clock - FORGET_MS then
      call('HDEL', l.e, all[i])
    end
  end
end

local function keep_readings(l)
  local texts = {}
  if l.machine_is_new then
    forget_machines(l)
  end
  for i, r in ipairs(l.readings) do
    texts[i] = string.format('%.0f:%.0f:%.0f', r.clock, r.boot, r.redis)
  end
  call('HSET', l.e, '@' .. l.machine, concat(texts, ' '))
end

-- Whether the machine should read again.
local function wants_reading(l)
  local last = l.readings[#l.readings]
  return not last or l.boot - last.boot >= l.shortest / APART
end

-- How old a reading is. Redis's clock must agree roughly, or the reading proves nothing: two machines that
-- were made of one image may have one name, and different boot clocks.
local function age_of_reading(l, r)
  local age = l.boot - r.boot
  return now - r.redis >= age * 7 / 8 - 1000 and age or 0
end

-- How old the oldest reading is that came after this start; 0: there is none.
local function age_of(l, start)
  local age = 0
  for _, r in ipairs(l.readings or {}) do
    age = r.clock > start and math.max(age, age_of_reading(l, r)) or age
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
