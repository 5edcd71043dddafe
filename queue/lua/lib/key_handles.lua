-- key_handles.lua - the types that each live worker handles and the schedules that its file names, until this
-- long after the last check.
local HANDLES, HANDLES_MS = P .. 'handles', 7200000
