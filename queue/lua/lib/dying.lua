-- dying.lua - jobs that die.

-- To `dead`, out of `set`; nil: it is in none. ran: ms of the attempt of this worker that failed; nil: none
-- did.
local function bury(set, id, record, reason, text, worker, ran)
  local line
  record = rewrite(record, function(head)
    line = head
    if ran then
      note_attempt(head, worker, ran, text)
    end
    head.reason, head.error, head.died, head.start_by = reason, text, now, nil
  end)
  local files = leave('dead', { id }, set, set == RUNNING and { LOCK .. id })
  call('HSET', JOBS, id, record)
  call('ZADD', DEAD, stamp, id)
  if line.on_dead or files then
    announce(id, line, files)
  end
end

-- A job about a death. Its type is `on_dead` of the job that died; of one that does not
-- say it, what `on_dead` of meta says for its type: there the file of a worker has put it.

-- An id for the job about the death of this id: `<id>.dead`, or `<id>.dead.2` and so on where another job has
-- that. It has room for a long one: its beginning and its SHA1.
local function id_of_death(id)
  local tail, n = '.dead', 1
  while true do
    local about = id .. tail
    if #about > 128 then
      about = string.sub(id, 1, 87 - #tail) .. '.' .. redis.sha1hex(id) .. tail
    end
    if call('HEXISTS', JOBS, about) == 0 then
      return about
    end
    n = n + 1
    tail = '.dead.' .. (n <= 100 and n or stamp .. '.' .. n) -- each takes a look: this many at most, then a time
  end
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

-- It is accepted in the script in which the job dies, so once for each death. `head` is the line of the dead
-- job's record. Its own death makes no other: its on_dead is no type.
local function announce(id, head, files)
  local payload, kind = {}, type_about(head, files)
  if not kind then
    return
  end
  local about = id_of_death(id)
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
  --- @step "steps/wake_rule.lua"
end

-- To `dead`; `buried` is the list that the claim answers.
local function put_away(buried, set, id, record, reason, text)
  bury(set, id, record, reason, text)
  buried[#buried + 2], buried[#buried + 1] = text, id
end

-- Bounds `dead` by count and age, after this many jobs were added. It removes as many as were added,
-- to keep the bound after each script, and some more, to reach a lowered bound soon.
local function trim_dead(max, age, brought)
  local oldest = now - math.min(DELAY_MAX, age)
  leave('trimmed', call('ZRANGEBYSCORE', DEAD, '-inf', oldest, 'LIMIT', 0, 100), DEAD)
  local over = math.min(call('ZCARD', DEAD) - max, brought + 100)
  if over > 0 then
    leave('trimmed', call('ZRANGE', DEAD, 0, over - 1), DEAD)
  end
end
