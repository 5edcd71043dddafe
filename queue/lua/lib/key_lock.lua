-- key_lock.lua - the prefix of the keys of jobs' locks.
--- @include "lib/keys.lua"
local LOCK = P .. 'lock:'
