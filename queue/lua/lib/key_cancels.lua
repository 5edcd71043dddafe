-- key_cancels.lua - the key of the requests to cancel.
local CANCELS = P .. 'cancel'
