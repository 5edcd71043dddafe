-- broken_ms.lua - when a wake-up has been missed.
local BROKEN_MS = 100 -- a time that is further past has been missed by its worker
