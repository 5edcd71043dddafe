-- bury.lua - jobs that die.

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
