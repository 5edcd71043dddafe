-- meta.lua - the fields of `meta`: the limits of a queue, its counters.

-- A full Redis accepts this, and then all other writes of the script.
local function open_writes()
  call('ZREM', WAKE, '')
end

-- The fields of `meta` for the wake rule and the limits.
local function read_meta()
  local m = call('HMGET', META, 'paused', 'max_running', 'rate_limit', 'rate_per', 'tokens',
    'tokens_at', 'next_wake', 'fence', 'uses', 'high')
  return {
    paused = m[1] == '1', max_running = tonumber(m[2] or 0), rate = tonumber(m[3] or 0),
    per = tonumber(m[4] or 0), tokens = tonumber(m[5] or false), tokens_at = tonumber(m[6] or 0),
    next_wake = tonumber(m[7] or false), fence = tonumber(m[8] or 0), uses = m[9] or '',
    high = tonumber(m[10] or 0),
  }
end

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
