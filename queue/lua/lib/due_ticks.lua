-- due_ticks.lua - what a worker has to know to reckon due ticks.

local ROOM = 65536 -- of what is told
local BYTES = 8388608 -- of the definitions with their payloads: as many as one request of a worker has

local HELD_MS = 5000 -- before one that is held is looked at again

local NUMBERS = { 'from', 'tick', 'accepted', 'skipped', 'dropped', 'rev' } -- of a state

-- Whether the worker can read it, and cron_tick can decide on it: a program may have written something else.
local function is_readable(line, state)
  local read, head = pcall(cjson.decode, line)
  local known, s = pcall(cjson.decode, state)
  local good = read and type(head) == 'table' and type(head.job) == 'table' and type(head.job.type) == 'string'
    and (head.limit == nil or type(head.limit) == 'number')
    and known and type(s) == 'table' and type(s.gen) == 'string' and (s.job == nil or type(s.job) == 'string')
  for _, name in ipairs(good and NUMBERS or {}) do
    good = good and (s[name] == nil or type(s[name]) == 'number')
  end
  return good
end

-- Its ticks are judged when a file names it again, as after an outage. It is looked at again soon: this clock may
-- have been set, so that live workers seemed dead. True: it was not held before.
local function hold(id, text)
  local state = cjson.decode(text)
  open_writes()
  call('ZADD', CRON_NEXT, string.format('%d', now + HELD_MS), id)
  if state.held then
    return false
  end
  state.held = 1
  call('HSET', CRON_STATE, id, cjson.encode(state))
  return true
end

-- Appends id, next, definition, state, bytes of each of the first `max` schedules whose tick is due, as
-- far as there is room for them in the answer. The definition is the line of JSON without the payload;
-- bytes: of both. One that cannot be read is left for a minute, so it does not hide others. One that is held from
-- now on is told once, with a definition ''.
local function due_ticks(out, max, worker)
  local due = call('ZRANGEBYSCORE', CRON_NEXT, '-inf', stamp, 'WITHSCORES', 'LIMIT', 0, max)
  local room, bytes = ROOM, BYTES
  for i = 1, #due, 2 do
    local id = due[i]
    bytes = bytes - call('HSTRLEN', CRON, id)
    if room <= 0 or bytes < 0 and i > 1 then -- the first one is told, or it is not due any more
      break
    end
    local value, state = call('HGET', CRON, id), call('HGET', CRON_STATE, id)
    local line = value and string.match(value, '^([^\n]*)\n')
    if not line or not state then
      call('ZREM', CRON_NEXT, id) -- another hand has taken it out
    elseif not is_readable(line, state) then
      call('ZADD', CRON_NEXT, string.format('%d', now + 60000), id)
    elseif is_held(id, worker) then
      if hold(id, state) then
        local n = #out
        out[n + 1], out[n + 2], out[n + 3], out[n + 4], out[n + 5] = id, due[i + 1], '', '', 0
      end
    else
      local n = #out
      out[n + 1], out[n + 2], out[n + 3], out[n + 4], out[n + 5] = id, due[i + 1], line, state, #value
      room = room - #line - #state
    end
  end
  return out
end
