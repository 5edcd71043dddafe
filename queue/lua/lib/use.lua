-- use.lua - several queues in one script.

-- What looks at several queues: from now on at this one.
local function use(prefix)
  P, LOCK = prefix, prefix .. 'lock:'
  SCHEDULE, RUNNING, META = prefix .. 'schedule', prefix .. 'running', prefix .. 'meta'
  EXPIRES = prefix .. 'expires'
  UNIQUE, WINDOWS, PARKED = prefix .. 'unique', prefix .. 'windows', prefix .. 'parked'
  WAKE, WORKERS, LEASES = prefix .. 'wake', prefix .. 'workers', prefix .. 'leases'
  HANDLES = prefix .. 'handles'
end
