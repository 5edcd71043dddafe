-- uses_now.lua - the letters of `uses` that a queue should have now.
--- @include "lib/uses.lua"

-- By `meta` and the marks of the queue with this prefix: a letter, and whether it uses that. `b` is not
-- among them, because only the records tell it.
local function uses_now(m, prefix)
  return { p = m.paused, n = m.max_running > 0, r = m.rate > 0,
    m = call('EXISTS', prefix .. 'crashes', prefix .. 'cancel') > 0 }
end
