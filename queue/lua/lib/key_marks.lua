-- key_marks.lua - the keys of what marks jobs beside their records.
local CRASHES = P .. 'crashes'
local CANCELS = P .. 'cancel'
