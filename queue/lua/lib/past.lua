-- past.lua - the history of a queue: one hash for each minute, and one for each ten minutes (`t` before
-- its number). A step's number is its time divided by its length.
local PAST = P .. 'past:'
local MINUTE_MS, TEN_MS = 60000, 600000
-- For how long after its end each is kept at most, ms.
local MINUTES_MS, TENS_MS = 10800000, 172800000
-- Beside the types: runs that crashed and verdicts that came too late in this step (count.lua).
local CRASHED_FIELD, LOST_FIELD = '!crashed', '!lost'
