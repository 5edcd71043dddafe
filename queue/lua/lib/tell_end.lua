-- tell_end.lua - the clients that wait for a job that ends.
local TOLD_AS = { purged = 'deleted', trimmed = 'deleted', replaced = 'cancelled' }

-- note: what `waits` says of it. The end is there before they are told.
local function tell_end(id, note, how)
  local accepted, clients = string.match(note, '^(%d+)(.*)$')
  if not accepted then
    return
  end
  call('SET', end_of(id, accepted), stamp .. ' ' .. (TOLD_AS[how] or how) .. clients, 'PX', '86400000')
  for client in string.gmatch(clients, '[^%s*]+') do
    call('RPUSH', P .. 'told:' .. client, id)
    call('PEXPIRE', P .. 'told:' .. client, '60000')
  end
end
