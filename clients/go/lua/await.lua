-- One job, for a client that waits for its end and is informed of it.
-- Stable since 0.2: clients of all languages call it (docs/keys.md).
--
--  KEYS[1]  prefix      hf:{queue}:
--  ARGV[1]  id
--  ARGV[2]  whole       as of `job`
--  ARGV[3]  accepted    as of `job`
--  ARGV[4]  noted       1: this client has noted its wait for this job before, and this Redis has lost
--           nothing since then; 0
--  ARGV[5]  client      a name: while the job waits or runs, the list `told:<client>` will get its id
--           when it ends, for a minute
--  ARGV[6]  waits       1: the client waits; 0: it does not any more
--  returns  as `job`. Sent twice: the same; an end that each client has read is forgotten after a minute.
local call, concat, floor = redis.call, table.concat, math.floor
local P = KEYS[1]
local time = call('TIME')
local micros = string.sub('00000' .. time[2], -6) -- six digits
local stamp = time[1] .. string.sub(micros, 1, 3)
local now = stamp + 0
call('EXISTS', P, P .. '/')
local META = P .. 'meta'
local uses = call('HGET', META, 'uses')
if (uses and string.find(uses, 's', 1, true)) then
  return { err = 'SHARDED holdfast: ' .. (call('HGET', META, 'shards') or '') }
end
local id, accepted, client, waits = ARGV[1], ARGV[3], ARGV[5], ARGV[6] == '1'
local WAITS = P .. 'waits'
local function end_of(id, accepted)
  return P .. 'ended:@' .. accepted .. ':' .. id
end
local DONE, KEPT, RESULTS = P .. 'done', P .. 'kept', P .. 'results'
local DEAD = P .. 'dead'
local LEVELS_BEHIND = { ':h', '', ':l' }
local SCHEDULE = P .. 'schedule'
local function levels(but_the_usual)
  local sets = {}
  for _, behind in ipairs(LEVELS_BEHIND) do
    sets[#sets + 1] = (behind ~= '' or not but_the_usual) and SCHEDULE .. behind or nil
  end
  return sets
end
local function waits_in(id)
  for _, set in ipairs(levels()) do
    local score = call('ZSCORE', set, id)
    if score then
      return set, score
    end
  end
end
local EXPIRES = P .. 'expires'
local function is_late(id)
  local by = call('ZSCORE', EXPIRES, id)
  return by and by + 0 <= now
end
local function found_in(id)
  local set, score = waits_in(id)
  if set then
    return is_late(id) and 'expired' or 'schedule', score, set
  end
  for _, name in ipairs({ 'running', 'dead', 'parked' }) do
    score = call('ZSCORE', P .. name, id)
    if score then
      return name == 'parked' and is_late(id) and 'expired' or name, score
    end
  end
end
local function place_of(id, uses)
  local name, score, set = found_in(id)
  if name then
    return name, score, 0, set
  end
  local kept = (uses and string.find(uses, 'k', 1, true)) and call('ZSCORE', KEPT, id)
  if kept and kept + 0 > now then
    return 'done', call('ZSCORE', DONE, id) or 0, floor(kept)
  end
end
local function how_it_ended(id)
  local ms, word = string.match(call('GET', P .. 'ended:' .. id) or '', '^(%d+) (%a+)')
  local purged = string.match(call('GET', P .. 'purged') or '', '^%d+')
  return { (-3), now, tonumber(ms or 0), tonumber(purged or 0), word or '' }
end
local JOBS = P .. 'jobs'
local function rewrite(record, change)
  local nl = string.find(record, '\n', 1, true) or 0
  local function changed(head)
    change(assert(head.type or head.v) and head)
    return cjson.encode(head)
  end
  local ok, line = pcall(function()
    return changed(cjson.decode(string.sub(record, 1, math.max(nl - 1, 0))))
  end)
  line = ok and line or changed({ v = 1, type = 'unknown', created = now })
  return line .. (nl == 0 and '\n' .. record or string.sub(record, nl))
end
local function as_expired(id, record)
  local at, line = call('ZSCORE', EXPIRES, id) + 0, string.match(record, '^[^\n]*')
  if not string.find(line, '"expired":%s*"dead"') then
    return at
  end
  return at, rewrite(record, function(head)
    head.reason, head.error = 'expired', string.format('it did not start within %gs', head.start_within / 1000)
  end)
end
local LOCK = P .. 'lock:'
local function lease_left(id)
  local ahead = math.max(0, (call('HGET', META, 'clock') or 0) - now)
  return math.max(0, call('PTTL', LOCK .. id) - ahead)
end
local CRASHES = P .. 'crashes'
local function time_of(score)
  return math.max(-253402300799999, math.min(253402300799999, score))
end
local function head_of(record)
  local nl = string.find(record, '\n', 1, true)
  local ok, head = pcall(cjson.decode, nl and string.sub(record, 1, nl - 1) or '')
  return ok and type(head) == 'table' and head or nil
end
local function key_of(record)
  record = record or ''
  local line = string.sub(record, 1, (string.find(record, '\n', 1, true) or 0) - 1)
  local head = string.find(line, '"unique"', 1, true) and head_of(line .. '\n')
  if head and type(head.unique) == 'string' then
    return head.unique, head
  end
end
local function entry_of(value)
  value = string.gsub(value or '', '^%S+$', '%0 e 0 0')
  local id, keeps, window, first, parked = string.match(value, '^(%S+) (%l) (%d+) (%d+) ?(%S*)$')
  return id and { id = id, keeps = keeps, window = window + 0, first = first + 0, parked = parked }
end
local UNIQUE, WINDOWS, PARKED = P .. 'unique', P .. 'windows', P .. 'parked'
local function job_before(place, id, record)
  local key = place == 'parked' and key_of(record)
  local e = key and entry_of(call('HGET', UNIQUE, key))
  return e and e.parked == id and e.id or ''
end
local PROGRESS = P .. 'progress'
local CHECKPOINTS = P .. 'checkpoint'
local LOGS = P .. 'logs' -- and LOG: the lines themselves
local function marks_of(id, token)
  local fence, progress = string.match(call('HGET', PROGRESS, id) or '', '^(%d+) (.*)$')
  local told = fence and string.sub(token, -#fence - 1) == ':' .. fence
  local checkpoint = string.match(call('HGET', CHECKPOINTS, id) or '', '^%d+ %d+ %S+ (.*)$') or ''
  local _, runs = string.gsub(call('HGET', LOGS, id) or '', '%d+', '')
  return { told and progress or '', #checkpoint, runs }
end
local function one_job(id, whole, uses)
  local name, score, kept = place_of(id, uses)
  if not name then
    return how_it_ended(id)
  end
  local record = call('HGET', name == 'done' and RESULTS or JOBS, id) or ''
  if name == 'expired' then
    local at, dead = as_expired(id, record)
    if not dead then
      return { (-3), now, at, 0, 'expired' }
    end
    name, score, record = 'dead', at, dead
  end
  local lease = lease_left(id)
  local mark = call('HGET', CRASHES, id) or '0'
  local nl, token = string.find(record, '\n', 1, true) or 0, call('GET', LOCK .. id) or ''
  return {
    0, now, name, time_of(score), whole and record or string.sub(record, 1, nl), #record - nl,
    token, lease, tonumber(string.match(mark, '^%d+')) or 0, kept, job_before(name, id, record),
    marks_of(id, token),
  }
end
local function accepted_job(id, whole, uses, accepted, noted)
  local said = accepted ~= '0' and call('GET', end_of(id, accepted))
  if said then
    local ms, word = string.match(said, '^(%d+) (%a+)')
    local set = word == 'done' and DONE or word == 'dead' and DEAD
    if set and tonumber(call('ZSCORE', set, id) or 0) == ms + 0 then
      return one_job(id, whole, uses), said
    end
    return { (-3), now, ms + 0, 0, word, 1 }, said
  end
  local answer = one_job(id, whole, uses)
  if answer[1] ~= 0 then
    return answer
  end
  local at = string.match(call('HGET', WAITS, id) or '', '^%d+')
  if accepted ~= '0' and (at and at + 0 > accepted + 0 or not at and noted) then
    return { (-3), now, 0, 0, '' } -- another job has this id
  end
  answer[13] = tonumber(at or accepted)
  return answer
end
local answer, said = accepted_job(id, ARGV[2] == '1', uses, accepted, ARGV[4] == '1')

-- The names of the other clients. One that is not among them is the one that was expected.
local function without(clients)
  local name = ' ' .. client
  if not string.find(clients .. ' ', name .. ' ', 1, true) then
    name = waits and ' *' or name
  end
  local from, to = string.find(clients .. ' ', name .. ' ', 1, true)
  return from and string.sub(clients, 1, from - 1) .. string.sub(clients, to) or clients
end

if said then
  local ending, clients = string.match(said, '^(%d+ %a+)(.*)$')
  local others = without(clients)
  if others ~= clients then
    local WAKE = P .. 'wake'
    local function open_writes()
      call('ZREM', WAKE, '')
    end
    open_writes()
    local left = others ~= '' and math.max(60000, call('PTTL', end_of(id, accepted))) or 60000
    call('SET', end_of(id, accepted), ending .. others, 'PX', string.format('%d', left))
  end
  return answer
elseif answer[1] ~= 0 then
  return answer
elseif answer[3] == 'dead' or answer[3] == 'done' then
  call('HDEL', WAITS, id) -- another hand has ended it
  return answer
end
local at, clients = string.match(call('HGET', WAITS, id) or '', '^(%d+)(.*)$')
clients = clients or ''
local there = string.find(clients .. ' ', ' ' .. client .. ' ', 1, true)
if waits and not there then
  local WAKE = P .. 'wake'
  local function open_writes()
    call('ZREM', WAKE, '')
  end
  open_writes()
  if at then
    call('HSET', WAITS, id, at .. without(clients))
  end
  local function note_use(feature, on)
    local uses = call('HGET', META, 'uses') or ''
    local others = string.gsub(uses, feature, '')
    if on and others == uses then
      call('HSET', META, 'uses', uses .. feature)
    elseif not on and others ~= uses then
      if others == '' then
        call('HDEL', META, 'uses')
      else
        call('HSET', META, 'uses', others)
      end
    end
  end
  local function note_wait(id, client, accepted, again)
    local at, clients = string.match(call('HGET', WAITS, id) or '', '^(%d+)(.*)$')
    local n = 0
    for _ in string.gmatch(clients or '', '%S+') do
      n = n + 1
    end
    if not at then
      at, clients = accepted or stamp, ''
      while not accepted and call('EXISTS', end_of(id, at)) == 1 do
        at = string.format('%.0f', at + 1)
      end
      note_use('m', true)
    end
    if n < 100 and (again or not string.find(clients .. ' ', ' ' .. client .. ' ', 1, true)) then
      call('HSET', WAITS, id, at .. clients .. ' ' .. client)
    end
    return at
  end
  answer[13] = tonumber(note_wait(id, client, accepted ~= '0' and accepted or nil))
elseif not waits and there then
  local WAKE = P .. 'wake'
  local function open_writes()
    call('ZREM', WAKE, '')
  end
  open_writes()
  local others = without(clients)
  if others == '' and string.find(answer[5], '^[^\n]*"awaited":%s*1') then
    others = ' *' -- its end will be asked for
  end
  if others == '' then
    call('HDEL', WAITS, id)
  else
    call('HSET', WAITS, id, at .. others)
  end
end
return answer
