-- key_crashes.lua - the key of the crashes of jobs.
local CRASHES = P .. 'crashes'
