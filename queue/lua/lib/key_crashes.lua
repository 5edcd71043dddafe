-- key_crashes.lua - the key of the crashes of jobs.
--- @include "lib/keys.lua"
local CRASHES = P .. 'crashes'
