-- key_dead.lua - the key of the dead jobs.
local DEAD = P .. 'dead'
