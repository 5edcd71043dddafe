-- key_waits.lua - the key of the clients that wait for the ends of jobs.
--- @include "lib/keys.lua"
local WAITS = P .. 'waits'
