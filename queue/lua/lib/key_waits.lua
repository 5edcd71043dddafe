-- key_waits.lua - the key of the clients that wait for the ends of jobs.
local WAITS = P .. 'waits'
