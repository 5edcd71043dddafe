-- keys.lua - KEYS[1] is the queue's prefix, `hf:{name}:`; all keys of the queue begin with it and
-- share its hash tag. These are the keys that most scripts need.
local SCHEDULE = P .. 'schedule'
local RUNNING = P .. 'running'
local JOBS = P .. 'jobs'
local META = P .. 'meta'
