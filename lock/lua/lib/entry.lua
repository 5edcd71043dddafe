-- entry.lua - the holds and wishes of one owner in a line.

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
