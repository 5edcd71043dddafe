-- slice.lua - how many arguments fit in one call.
local SLICE = 3000 -- arguments in one call; Lua's unpack ends near 8000
