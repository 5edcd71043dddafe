-- key_wake.lua - the key of the baton.
local WAKE = P .. 'wake'
