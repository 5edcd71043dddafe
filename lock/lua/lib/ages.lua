-- ages.lua - how long the keys of a line stay.
local LINE_MS = 5184000000 -- the keys of a line end 60 days after the last change; renewals leave at least half
