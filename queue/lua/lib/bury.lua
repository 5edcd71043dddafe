-- bury.lua - jobs that die.
--- @include "lib/keys.lua"
--- @include "lib/key_dead.lua"
--- @include "lib/rewrite.lua"
--- @include "lib/clear_marks.lua"

-- To `dead`, out of whatever set it was in (the caller has taken it out of there).
local function bury(id, record, reason, text, counts)
  record = rewrite(record, function(head)
    head.attempts = counts and (head.attempts or 0) + 1 or head.attempts
    head.reason, head.error, head.died = reason, text, now
  end)
  call('HSET', JOBS, id, record)
  call('ZADD', DEAD, stamp, id)
  clear_marks({ id })
end
