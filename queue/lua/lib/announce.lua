-- announce.lua - a job about a death: `on_dead` of the job that died is its type.
--- @include "lib/keys.lua"
--- @include "lib/key_wake.lua"
--- @include "lib/broken_ms.lua"
--- @include "lib/keeping.lua"
--- @include "lib/count.lua"

-- The id of the job about the death of this id. It has room for a long one: its beginning and its SHA1.
local function id_of_death(id)
  local about = id .. '.dead'
  return #about <= 128 and about or string.sub(id, 1, 82) .. '.' .. redis.sha1hex(id) .. '.dead'
end

-- It is accepted in the script in which the job dies, so once for each death, and not again while such
-- a job is there. `head` is the line of the dead job's record.
local function announce(id, head)
  local about, payload = id_of_death(id), {}
  if call('HGET', JOBS, about) then
    return
  end
  local names = { 'id', 'type', 'queue', 'reason', 'error', 'attempts' }
  local told = {
    id = id, type = head.type, queue = string.match(P, '{([^}/]*)'), reason = head.reason,
    error = head.error, attempts = head.attempts or 0,
  }
  for k = 1, #names do
    payload[k] = cjson.encode(names[k]) .. ':' .. cjson.encode(told[names[k]])
  end
  local line = string.format('{"type":%s,"created":%s}\n', cjson.encode(head.on_dead), stamp)
  call('HSET', JOBS, about, line .. '{' .. concat(payload, ',') .. '}')
  call('ZADD', SCHEDULE, stamp, about)
  call('DEL', P .. 'ended:' .. about)
  forget_kept({ about })
  count('enqueued', 1)
  local at, doubted, next_wake = now, true, nil
  --- @step "lib/wake_rule.lua"
end
