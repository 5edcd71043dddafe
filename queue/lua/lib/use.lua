-- use.lua - several queues in one script.
--- @include "lib/keys.lua"
--- @include "lib/key_lock.lua"
--- @include "lib/key_wake.lua"
--- @include "lib/key_workers.lua"
--- @include "lib/key_handles.lua"
--- @include "lib/key_expires.lua"
--- @include "lib/key_unique.lua"

-- What looks at several queues: from now on at this one.
local function use(prefix)
  P, LOCK = prefix, prefix .. 'lock:'
  SCHEDULE, RUNNING, META = prefix .. 'schedule', prefix .. 'running', prefix .. 'meta'
  EXPIRES = prefix .. 'expires'
  UNIQUE, WINDOWS, PARKED = prefix .. 'unique', prefix .. 'windows', prefix .. 'parked'
  WAKE, WORKERS, LEASES = prefix .. 'wake', prefix .. 'workers', prefix .. 'leases'
  HANDLES = prefix .. 'handles'
end
