-- line.lua - a line: reading and writing it, its entries, and the fences of a tag.
--
-- Redis's clock may be set, forward and back, so it never decides that a lease is over. Each line has
-- a clock of its own, in ms, that only counts on. A lease begins at Redis's time or at the line's
-- clock, whichever is ahead. A client that wants the lock reads the line's clock; a reading moves the
-- clock past all leases that began before. So readings prove that leases are over (lib/lease.lua).

local lines = {}

-- X, S, permits: the present grants; limit: of permits, by the oldest live entry; shortest: the
-- shortest lease that was in it; birth: a number that no other line of its tag has.
local function line(n)
  local l = lines[n]
  if not l then
    l = { name = n, x = P .. 'x:' .. n, q = P .. 'q:' .. n, e = P .. 'e:' .. n,
      cell = P .. 'cell:' .. n }
    local X, S, permits, limit, shortest, birth, clock =
      match(call('HGET', l.e, '#') or '', '^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+)$')
    l.X, l.S = tonumber(X or 0), tonumber(S or 0)
    l.permits, l.limit = tonumber(permits or 0), tonumber(limit or 0)
    l.shortest, l.birth, l.clock = tonumber(shortest or 0), birth, tonumber(clock or 0)
    l.now = math.max(now, l.clock)
    meet_fence(birth)
    local all, waiting = call('ZCARD', l.x), call('ZCARD', l.q)
    l.waits = waiting > 0 and all > 0
    if all <= waiting then -- it has no holder, even if some of its keys were lost
      l.X, l.S, l.permits = 0, 0, 0
    end
    lines[n] = l
  end
  return l
end

local function entry_of(l, owner)
  local text = call('HGET', l.e, owner)
  local e = text and read_entry(text)
  meet_fence(e and e.fence)
  return e
end

local function put_entry(l, owner, e)
  call('HSET', l.e, owner, write_entry(e))
  l.changed = true
end

-- Written at once: the grants in Redis are right wherever a script ends.
local function save(l)
  l.birth = l.birth or next_fence()
  call('HSET', l.e, '#', concat({ l.X, l.S, l.permits, l.limit, string.format('%.0f', l.shortest),
    l.birth, string.format('%013.0f', l.clock) }, ' '))
  l.changed = true
end

local function counts(l, e, by)
  if e.mode == 'x' then
    l.X = l.X + by
  elseif e.mode == 's' then
    l.S = l.S + by
  else
    l.permits = l.permits + by * e.permits
  end
  save(l)
end

local function take_out(l, owner, e)
  call('ZREM', l.x, owner)
  call('ZREM', l.q, owner)
  call('HDEL', l.e, owner)
  if e and e.granted then
    counts(l, e, -1)
  end
  l.changed = true
end

-- mode: x alone, s shared, p with permits; then 0 it waits, 1 it holds, 2 it holds and is asked to
-- give it back. holds: {{id, mode, client, start, lease}, ...}, one for each acquisition of its owner;
-- each has a start and a lease of its own where they belong to several clients, else nil. names: of all lines in which
-- it waits; it is granted in all of them or in none. lease: ms, the longest that any hold asked for.
local ENTRY = '^(%a) (%d) (%d+) (%d+) (%S+) (%S+) (%S+) (%d+)$'

local function read_entry(text)
  local e, state, names, holds = { names = {}, holds = {} }, nil, nil, nil
  e.mode, state, e.permits, e.fence, e.client, names, holds, e.lease = match(text, ENTRY)
  if not e.mode then
    return nil
  end
  e.granted, e.revoked, e.permits = state ~= '0', state == '2', tonumber(e.permits)
  e.lease = tonumber(e.lease)
  for name in string.gmatch(names, '[^,]+') do
    e.names[#e.names + 1] = name
  end
  for id, mode, client, start, ms in string.gmatch(holds, '([^,=]+)=(%a)@?([^,@]*)@?(%d*)@?(%d*)') do
    e.holds[#e.holds + 1] = { id, mode, client ~= '' and client or e.client, tonumber(start), tonumber(ms) }
    e.several = e.several or client ~= ''
  end
  return e
end

local function write_entry(e)
  local holds = {}
  e.client, e.several = e.holds[1][3], false
  for _, hold in ipairs(e.holds) do
    e.several = e.several or hold[3] ~= e.client
  end
  for i, hold in ipairs(e.holds) do
    holds[i] = hold[1] .. '=' .. hold[2]
    if e.several then
      holds[i] = string.format('%s@%s@%.0f@%.0f', holds[i], hold[3], hold[4], hold[5])
    end
  end
  local state = e.granted and (e.revoked and 2 or 1) or 0
  return concat({ e.mode, state, e.permits, e.fence, e.client, concat(e.names, ','),
    concat(holds, ','), string.format('%.0f', e.lease) }, ' ')
end

local function find_hold(e, id)
  for i, hold in ipairs(e.holds) do
    if hold[1] == id then
      return i
    end
  end
end

-- All holders, and when their leases began: owner, start, ...; for any number of waiters.
local function holders_of(l)
  return call('ZDIFF', 2, l.x, l.q, 'WITHSCORES')
end

local LINE_MS = 5184000000 -- the keys of a line end 60 days after the last change; renewals leave at least half

local FENCE_MS = 3600000 -- the counter ends this long after its last use

-- The highest fence that this script has met in lines. The counter may be gone: a step of Redis's clock ends it.
local met = 0

local function meet_fence(fence)
  met = math.max(met, tonumber(fence) or 0)
end

-- Rises for ever: also when a failover lost its last value, and when it ended meanwhile. It does not
-- end while it is ahead of Redis's clock, which was set back then.
local function next_fence()
  local last, micros = math.max(met, tonumber(call('GET', P .. 'fence') or 0)), time[1] * 1000000 + time[2]
  local fence = string.format('%.0f', math.max(last + 1, micros))
  call('SET', P .. 'fence', fence, 'PX', FENCE_MS + floor(math.max(0, last - micros) / 1000))
  return fence
end
