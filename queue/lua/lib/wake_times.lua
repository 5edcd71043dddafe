-- wake_times.lua - how long the wake rule trusts others.
local BROKEN_MS = 100 -- a promise that is further past has been broken
local WATCHED_MS = 6000 -- every worker checks its queues more often than that
