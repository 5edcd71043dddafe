-- ask_to_cancel.lua - marks a run to cancel.

-- Marks the present run of a job to be cancelled. A lock that has ended names no run, and does not
-- tell that its holder is gone, for this clock may have been set forward: then the mark is `*`, any.
-- Returns its token ('': none) and the end of its lock; nil: it does not run.
local function ask_to_cancel(id)
  local ends = call('ZSCORE', RUNNING, id)
  local token = ends and (call('GET', LOCK .. id) or '')
  if token then
    call('HSET', CANCELS, id, token == '' and '*' or string.match(token, '(%d*)$'))
    note_use('m', true)
  end
  return token, ends and now + lease_left(id) or 0
end
