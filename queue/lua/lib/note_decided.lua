-- note_decided.lua - until when ticks are decided on.

local STEP_BACK_MS = 10800000 -- if this clock is set back by more, ticks are reckoned anew

-- Until when they are, of a schedule that is changed now. What was decided on before a smaller step back
-- does not repeat.
local function decided_until(from)
  return from and from > now and from <= now + STEP_BACK_MS and from or now
end

-- When a script has last decided on ticks. Only a later time is noted: after a step back of this clock, lib/sweep_cron.lua must still see it.
local function note_decided()
  if now > tonumber(call('HGET', META, 'cron_high') or 0) then
    call('HSET', META, 'cron_high', stamp)
  end
end
