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
--- @step "steps/guard.lua"
local uses = call('HGET', META, 'uses')
--- @step "steps/sharded.lua"
local id, accepted, client, waits = ARGV[1], ARGV[3], ARGV[5], ARGV[6] == '1'
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
    open_writes()
    local left = others ~= '' and math.max(60000, call('PTTL', end_of(id, accepted))) or 60000
    call('SET', end_of(id, accepted), ending .. others, 'PX', string.format('%d', left))
  end
  return answer
elseif answer[1] ~= OK then
  return answer
elseif answer[3] == 'dead' or answer[3] == 'done' then
  call('HDEL', WAITS, id) -- another hand has ended it
  return answer
end
local at, clients = string.match(call('HGET', WAITS, id) or '', '^(%d+)(.*)$')
clients = clients or ''
local there = string.find(clients .. ' ', ' ' .. client .. ' ', 1, true)
if waits and not there then
  open_writes()
  if at then
    call('HSET', WAITS, id, at .. without(clients))
  end
  answer[13] = tonumber(note_wait(id, client, accepted ~= '0' and accepted or nil))
elseif not waits and there then
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
