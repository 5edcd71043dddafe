-- key_unique.lua - the keys of unique jobs (lib/unique.lua).
--- @include "lib/keys.lua"
local UNIQUE, WINDOWS, PARKED = P .. 'unique', P .. 'windows', P .. 'parked'
