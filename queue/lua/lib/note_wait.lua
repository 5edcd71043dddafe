-- note_wait.lua - a client waits for a job that is there.
local CLIENTS = 100 -- of one job; more of them ask again

-- `accepted` of the job of this id; a new job gets the present time, or one that no earlier job of its id has.
-- again: one more client of this name waits.
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
  if n < CLIENTS and (again or not string.find(clients .. ' ', ' ' .. client .. ' ', 1, true)) then
    call('HSET', WAITS, id, at .. clients .. ' ' .. client)
  end
  return at
end
