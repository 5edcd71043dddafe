-- evidence.lua - what a machine has read of a clock, and when: the evidence that leases are over.
--
-- The clock belongs to a queue or to the line of a lock. It is in ms, and never goes back. A lease begins at
-- Redis's time or at this clock, the later of the two. A reading moves the clock past all leases that
-- began before. The client notes the time of its machine's boot clock once the answer is there, and
-- shows both with its next request, as `number:clock:boot:redis`: the number tells which clock of this
-- name it was, redis is Redis's time of the answer. What is shown stays in Redis, for the machine:
-- `clock:boot:redis ...`, the oldest first. So it outlives the process, and serves all processes of
-- the machine. A lease that began before a reading is over when the reading is as old as the lease is
-- long. Redis's clock can only delay this proof.
local READINGS, SILENT_MS = 32, 3600000
local MACHINES, MOST = 64, 256 -- from the first on machines give way to a new one; there are never more than the second
local APART = 25 -- readings are a shortest lease / 25 apart

local function read_readings(text)
  local all = {}
  for clock, boot, redis in string.gmatch(text or '', '(%d+):(%d+):(%d+)') do
    all[#all + 1] = { clock = tonumber(clock), boot = tonumber(boot), redis = tonumber(redis) }
  end
  return all
end

local function write_readings(all)
  local texts = {}
  for i, r in ipairs(all) do
    texts[i] = string.format('%.0f:%.0f:%.0f', r.clock, r.boot, r.redis)
  end
  return concat(texts, ' ')
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

-- Adds what is shown if it tells more. `is_of` says whether its number is of this clock, which is at `at`; readings
-- up to `before` prove nothing any more, but the newest of them shows that a holder has renewed since. Those with a
-- later boot time give way: it tells more than they do, or the boot clock was set back, with its machine.
local function add_reading(all, shown, is_of, at, shortest, before)
  local number, clock, boot, redis = string.match(shown, '^(%d+):(%d+):(%d+):(%d+)$')
  local last, n = all[#all], #all
  clock, boot = tonumber(clock), tonumber(boot)
  if not number or not is_of(tonumber(number)) or clock > at or last and clock <= last.clock then
    return false
  end
  while n > 0 and boot < all[n].boot do
    n = n - 1
  end
  if n > 0 and boot < all[n].boot + shortest / APART then
    return false
  end
  while #all > n do
    table.remove(all)
  end
  all[#all + 1] = { clock = clock, boot = boot, redis = tonumber(redis) }
  while all[2] and all[2].clock <= before do
    table.remove(all, 1)
  end
  if #all > READINGS then
    forget_one(all)
  end
  return true
end

-- Machines that have not asked for an hour give way to a new one; where MOST are there, those that have not asked for
-- `lease` ms. False: all of them ask, so they prove what is over, and the new one has no place. `others`: fields of the
-- hash that are no machine's, or no field of one whose name begins so.
local function make_room(key, others, mark, at, lease)
  local n = call('HLEN', key) - others
  if n < MACHINES then
    return true
  end
  local all, silent = call('HGETALL', key), at - (n < MOST and SILENT_MS or lease)
  for i = 1, #all, 2 do
    local last = string.sub(all[i], 1, #mark) == mark and string.match(all[i + 1], '(%d+):%d+:%d+$')
    if last and tonumber(last) < silent then
      n = n - call('HDEL', key, all[i])
    end
  end
  return n < MOST
end

-- How old a reading is by the boot clock of the asker's machine, and no older than by Redis's: two machines that
-- were made of one image may have one name, and different boot clocks.
local function age_at(boot, r)
  return math.min(boot - r.boot, now - r.redis)
end
