-- prelude.lua - what scripts of locks share; prelude_line.lua is more of it. The build puts in front
-- of each script the definitions that it uses.
--
-- KEYS[1] is the prefix of a tag, `hf:lock:{tag}:`; all keys of its locks begin with it, so that
-- one script can take several of them. A lock `n` has two forms, which exclude each other:
--
--   cell:n   a string `owner:fence` that ends with its lease
--   the line x:n sorted set, owner: when its lease began, by the line's clock; q:n sorted set of
--            those that wait, owner: place; e:n hash, owner: its entry, and '#': what is granted, and
--            the line's clock
--
-- An entry is a lease, also while it waits. It is granted by its place and its mode, by whichever
-- script finds that it can be; a message in the inbox `in:<client>` only says so sooner, and one
-- in `in:<client>/held` that it is taken away, or asked back. Beside them: `fence`, the one counter of the tag, and `guard:<resource>`.
-- Every script answers {status, now, ...}: status is a number of error.h; now is TIME in ms. It
-- reads and refuses first and writes last, because scripts do not roll back.

local call, concat, floor, match = redis.call, table.concat, math.floor, string.match
local OK, LOST, LATE, CANCEL, TAKEN, DEADLOCK, WAITING = 0, -2, -4, -5, -9, -10, -11
local LINE_MS = 5184000000 -- the keys of a line end 60 days after the last change; renewals leave at least half
local FENCE_MS = 3600000 -- the counter ends so long after its last use
local INBOX_MS = 60000
local SWEEP = 1000 -- entries that one script looks at, at most

local P = KEYS[1]

local time = call('TIME')
local now = time[1] * 1000 + floor(time[2] / 1000)

local function late(not_after)
  not_after = tonumber(not_after)
  return not_after > 0 and now > not_after
end

-- A full Redis accepts this, and then whatever else the script writes.
local function open_writes()
  call('DEL', P .. 'full')
end

-- Rises for ever: also when a failover lost its last value, and when it ended meanwhile. It does not
-- end while it is ahead of Redis's clock, which was set back then.
local function next_fence()
  local last, micros = tonumber(call('GET', P .. 'fence') or 0), time[1] * 1000000 + time[2]
  local fence = string.format('%.0f', math.max(last + 1, micros))
  call('SET', P .. 'fence', fence, 'PX', FENCE_MS + floor(math.max(0, last - micros) / 1000))
  return fence
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
