-- key_lock.lua - the prefix of the keys of jobs' locks.
local LOCK = P .. 'lock:'
