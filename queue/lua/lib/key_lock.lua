-- key_lock.lua - what the key of a job's lock begins with.
--- @include "lib/keys.lua"
local LOCK = P .. 'lock:'
