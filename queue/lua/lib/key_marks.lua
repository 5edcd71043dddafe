-- key_marks.lua - the keys of what runs leave beside their jobs.
local PROGRESS = P .. 'progress'
local CHECKPOINTS = P .. 'checkpoint'
local LOGS = P .. 'logs' -- and LOG: the lines themselves
local LOG = P .. 'log:'
