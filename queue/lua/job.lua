-- One job.
--
--  KEYS[1]  prefix      hf:{queue}:
--  ARGV[1]  id
--  ARGV[2]  whole       1: with its payload; 0: only the first line of its record
--  returns  {OK, now, set, score, record, payload bytes, token, lease, crashes, kept}
--           | {GONE, now, ended, purged, word}
--           set: `schedule`, `running`, `dead` or `done`; token and lease (ms left) of a running
--           job, else '' and 0; record '' if it is missing or has no first line; of a done job its
--           line and its result, and kept: until when it is kept, else 0.
--           ended: when a job of this id ended without being done, purged: when a slice of the
--           queue was, each within the last minute; else 0. word: how it ended, `cancelled`,
--           `deleted` or `expired`, else ''. A job whose time is over is told as expired, or as
--           dead, also while it still waits.
--- @include "lib/guard.lua"
--- @include "lib/keys.lua"
--- @include "lib/one_job.lua"
local uses = call('HGET', META, 'uses')
--- @step "lib/sharded.lua"
return one_job(ARGV[1], ARGV[2] == '1', uses)
