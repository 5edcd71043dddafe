-- key_cron.lua - the keys of the schedules (docs/keys.md).
local CRON, CRON_STATE = P .. 'cron', P .. 'cron_state'
local CRON_NEXT, CRON_NAMED = P .. 'cron_next', P .. 'cron_named'
