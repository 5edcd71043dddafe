-- runs.lua - what workers tell of runs while somebody looks: a stream, one entry for each worker and second.
local RUN_EVENTS = P .. 'runs'
