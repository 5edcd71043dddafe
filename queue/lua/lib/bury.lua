-- bury.lua - jobs that die.
--- @include "lib/keys.lua"
--- @include "lib/key_lock.lua"
--- @include "lib/key_dead.lua"
--- @include "lib/rewrite.lua"
--- @include "lib/leave.lua"

-- To `dead`, out of `set`; nil: it is in none.
local function bury(set, id, record, reason, text, counts)
  record = rewrite(record, function(head)
    head.attempts = counts and (head.attempts or 0) + 1 or head.attempts
    head.reason, head.error, head.died, head.start_by = reason, text, now, nil
  end)
  leave('dead', { id }, set, set == RUNNING and { LOCK .. id })
  call('HSET', JOBS, id, record)
  call('ZADD', DEAD, stamp, id)
end
