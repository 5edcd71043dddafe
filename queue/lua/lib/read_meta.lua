-- read_meta.lua - the fields of `meta` for the wake rule and the limits.

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
