-- uses_now.lua - the letters of `uses` that a queue should have now.
--- @include "lib/uses.lua"

-- By `meta` and the keys of the queue with this prefix: a letter, and whether it uses that. `b` is not
-- among them, because only the records tell it. A running job returns to its level, so `l` stays while
-- one runs.
local function uses_now(m, prefix)
  local levelled = call('EXISTS', prefix .. 'schedule:h', prefix .. 'schedule:l') > 0
    or string.find(m.uses, 'l', 1, true) ~= nil and call('EXISTS', prefix .. 'running') > 0
  return { p = m.paused, n = m.max_running > 0, r = m.rate > 0, l = levelled,
    m = call('EXISTS', prefix .. 'crashes', prefix .. 'cancel') > 0,
    k = call('EXISTS', prefix .. 'done') > 0 }
end
