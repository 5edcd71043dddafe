-- note_decided.lua - when a script has last decided on ticks.
--- @include "lib/keys.lua"

-- Only a later time is noted: after a step back of this clock, lib/sweep_cron.lua must still see it.
local function note_decided()
  if now > tonumber(call('HGET', META, 'cron_high') or 0) then
    call('HSET', META, 'cron_high', stamp)
  end
end
