-- key_expires.lua - the key of the times at which waiting jobs expire.
local EXPIRES = P .. 'expires'
