-- alone.lua - the field `alone` of a record: with this number the next run has its process to itself.
local ALONE = 3
