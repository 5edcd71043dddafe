-- One job, for a client that waits for its end and is told of it.
--
--  KEYS[1]  prefix      hf:{queue}:
--  ARGV[1]  id
--  ARGV[2]  whole       as of `job`
--  ARGV[3]  client      a name: while the job waits or runs, the list `told:<client>` will get its id
--           when it ends, for a minute
--  ARGV[4]  waits       1: the client waits; 0: it does not any more
--  returns  as `job`. Sent twice: the same.
--- @include "lib/guard.lua"
--- @include "lib/keys.lua"
--- @include "lib/key_waits.lua"
--- @include "lib/open_writes.lua"
--- @include "lib/one_job.lua"
--- @include "lib/uses.lua"
local CLIENTS = 100 -- of one job; more of them ask again
local uses = call('HGET', META, 'uses')
--- @step "lib/sharded.lua"
local id, client, waits = ARGV[1], ARGV[3], ARGV[4] == '1'
local answer = one_job(id, ARGV[2] == '1', uses)
if answer[1] ~= OK or answer[3] == 'dead' or answer[3] == 'done' then
  call('HDEL', WAITS, id) -- an older version has ended it
  return answer
end
local clients = {}
for name in string.gmatch(call('HGET', WAITS, id) or '', '%S+') do
  if name ~= client then
    clients[#clients + 1] = name
  end
end
if waits and #clients < CLIENTS then
  clients[#clients + 1] = client
end
open_writes()
if #clients > 0 then
  call('HSET', WAITS, id, concat(clients, ' '))
  note_use('m', true)
else
  call('HDEL', WAITS, id)
end
return answer
