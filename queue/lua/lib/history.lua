-- history.lua - how a queue is now, for its history.

local function sample()
  local ready, delayed, oldest = 0, 0, 0
  for _, set in ipairs(levels()) do
    local due = call('ZCOUNT', set, '-inf', now)
    ready, delayed = ready + due, delayed + call('ZCARD', set) - due
    local first = due > 0 and call('ZRANGE', set, 0, 0, 'WITHSCORES')[2]
    oldest = math.max(oldest, first and math.min(now - first, now) or 0)
  end
  local m = call('HMGET', META, 'enqueued', 'done', 'failed', 'crashed')
  return string.format('s=%s r=%.0f o=%.0f l=%.0f n=%.0f x=%.0f e=%s c=%s f=%s k=%s', stamp, ready, oldest,
    delayed, call('ZCARD', RUNNING), call('ZCARD', DEAD), m[1] or '0', m[2] or '0', m[3] or '0', m[4] or '0')
end
