-- keys.lua - the keys of a queue (docs/keys.md). KEYS[1] is its prefix, `hf:{name}:`; all of its keys begin
-- with it and share its hash tag.

-- The keys that most scripts need.
local SCHEDULE = P .. 'schedule'
local RUNNING = P .. 'running'
local JOBS = P .. 'jobs'
local META = P .. 'meta'

-- The prefix of the keys of jobs' locks.
local LOCK = P .. 'lock:'

-- The key of the baton.
local WAKE = P .. 'wake'

-- The keys of the workers, and of the lengths of their leases.
local WORKERS = P .. 'workers'
local LEASES = P .. 'leases'

-- The types that each live worker handles and the schedules that its file names, until this
-- long after the last check.
local HANDLES, HANDLES_MS = P .. 'handles', 7200000

-- The key of the dead jobs.
local DEAD = P .. 'dead'

-- The key of the times at which waiting jobs expire.
local EXPIRES = P .. 'expires'

-- The keys of done jobs that are kept.
local DONE, KEPT, RESULTS = P .. 'done', P .. 'kept', P .. 'results'

-- The key of the crashes of jobs.
local CRASHES = P .. 'crashes'

-- The key of the requests to cancel.
local CANCELS = P .. 'cancel'

-- The key of the clients that wait for the ends of jobs.
local WAITS = P .. 'waits'

-- The keys of what runs leave beside their jobs.
local PROGRESS = P .. 'progress'
local CHECKPOINTS = P .. 'checkpoint'
local LOGS = P .. 'logs' -- and LOG: the lines themselves
local LOG = P .. 'log:'

-- The keys of unique jobs (lib/unique.lua).
local UNIQUE, WINDOWS, PARKED = P .. 'unique', P .. 'windows', P .. 'parked'
local WAITS_FOR = -14 -- the code of a parked job

-- The keys of the schedules (docs/keys.md).
local CRON, CRON_STATE = P .. 'cron', P .. 'cron_state'
local CRON_NEXT, CRON_NAMED = P .. 'cron_next', P .. 'cron_named'

-- What workers report of runs while a viewer looks: a stream, one entry for each worker and second.
local RUN_EVENTS = P .. 'runs'

-- The history of a queue: one hash for each minute, and one for each ten minutes (`t` before
-- its number). A step's number is its time divided by its length.
local PAST = P .. 'past:'
local MINUTE_MS, TEN_MS = 60000, 600000
-- For how long after its end each is kept at most, ms.
local MINUTES_MS, TENS_MS = 10800000, 172800000
-- Beside the types: runs that crashed and verdicts that came too late in this step (lib/meta.lua).
local CRASHED_FIELD, LOST_FIELD = '!crashed', '!lost'

-- The types of all keys that a queue has, but for the sets of its jobs and for what ends by itself. The audit
-- checks them, and `remove` deletes them. unit.features compares them with docs/keys.md.
local TYPE_OF_KEY = {
  meta = 'hash', jobs = 'hash', wake = 'zset', workers = 'zset', leases = 'zset', handles = 'hash', readings = 'hash',
  crashes = 'hash', cancel = 'hash', waits = 'hash', progress = 'hash', checkpoint = 'hash', logs = 'hash',
  expires = 'zset', refused = 'zset', unique = 'hash', windows = 'zset',
  done = 'zset', kept = 'zset', results = 'hash',
  cron = 'hash', cron_state = 'hash', cron_next = 'zset', cron_named = 'zset',
}

-- What looks at several queues: from now on at this one.
local function use(prefix)
  P, LOCK = prefix, prefix .. 'lock:'
  SCHEDULE, RUNNING, META = prefix .. 'schedule', prefix .. 'running', prefix .. 'meta'
  EXPIRES = prefix .. 'expires'
  UNIQUE, WINDOWS, PARKED = prefix .. 'unique', prefix .. 'windows', prefix .. 'parked'
  WAKE, WORKERS, LEASES = prefix .. 'wake', prefix .. 'workers', prefix .. 'leases'
  HANDLES = prefix .. 'handles'
end
