-- key_cancels.lua - the key of the requests to cancel.
--- @include "lib/keys.lua"
local CANCELS = P .. 'cancel'
