-- count.lua - the counters of a queue.

-- The history has each crash and each late verdict at once, because no end of an attempt may follow for hours.
local IN_PAST = { crashed = CRASHED_FIELD, lost = LOST_FIELD }

local function count(field, by)
  if by > 0 then
    call('HINCRBY', META, field, by)
    if IN_PAST[field] then
      for _, step in ipairs({ { '', MINUTE_MS, MINUTES_MS }, { 't', TEN_MS, TENS_MS } }) do
        local key = PAST .. step[1] .. string.format('%.0f', floor(now / step[2]))
        call('HINCRBY', key, IN_PAST[field], by)
        if call('PTTL', key) < 0 then
          call('PEXPIRE', key, string.format('%d', step[3] + step[2]))
        end
      end
    end
  end
end
