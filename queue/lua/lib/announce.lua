-- announce.lua - a job about a death. Its type is `on_dead` of the job that died; of one that does not
-- say it, what `on_dead` of meta says for its type: there the file of a worker has put it.
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

-- The type of the job about a death; nil: there is none. `files`: `on_dead` of meta, false: it has none.
local function type_about(head, files)
  local own = head.on_dead
  if own == nil and files then
    local good, types = pcall(cjson.decode, files)
    types = good and type(types) == 'table' and types or {}
    own = types[head.type]
    if own == nil then
      own = types['*']
    end
  end
  return type(own) == 'string' and own or nil
end

-- It is accepted in the script in which the job dies, so once for each death, and not again while such
-- a job is there. `head` is the line of the dead job's record. Its own death makes no other: its on_dead
-- is no type.
local function announce(id, head, files)
  local about, payload, kind = id_of_death(id), {}, type_about(head, files)
  if not kind or call('HGET', JOBS, about) then
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
  local line = string.format('{"type":%s,"created":%s,"on_dead":0}\n', cjson.encode(kind), stamp)
  call('HSET', JOBS, about, line .. '{' .. concat(payload, ',') .. '}')
  call('ZADD', SCHEDULE, stamp, about)
  call('DEL', P .. 'ended:' .. about)
  forget_kept({ about })
  count('enqueued', 1)
  local at, doubted, next_wake = now, true, nil
  --- @step "lib/wake_rule.lua"
end
