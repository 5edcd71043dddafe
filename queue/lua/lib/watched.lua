-- watched.lua - how far ahead a script looks for leases that end.
local WATCHED_MS = 6000 -- every worker checks its queues more often than that
