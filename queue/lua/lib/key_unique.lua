-- key_unique.lua - the keys of unique jobs (lib/unique.lua).
local UNIQUE, WINDOWS, PARKED = P .. 'unique', P .. 'windows', P .. 'parked'
local WAITS_FOR = -14 -- the code of a parked job
