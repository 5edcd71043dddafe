-- inbox_ms.lua - how long a message stays.
local INBOX_MS = 60000
