-- key_wake.lua - the key of the baton.
--- @include "lib/keys.lua"
local WAKE = P .. 'wake'
