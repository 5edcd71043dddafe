-- uses_now.lua - the letters of `uses` that a queue should have now.

-- By `meta` and the keys of the queue with this prefix: a letter, and whether it uses that. `b` is not
-- among them, because only the records tell it. A running job may wait again, at its level and until it
-- expires, so `l` and `x` stay while one runs. Any job may come to take its unique key again, so `u` stays
-- while one is there.
local function uses_now(m, prefix)
  local runs = call('EXISTS', prefix .. 'running') == 1
  local function stays(letter, ...)
    return call('EXISTS', ...) > 0 or runs and string.find(m.uses, letter, 1, true) ~= nil
  end
  local keyed = call('EXISTS', prefix .. 'unique') > 0 or string.find(m.uses, 'u', 1, true) ~= nil
    and call('EXISTS', prefix .. 'jobs') > 0
  return { e = call('HEXISTS', prefix .. 'meta', 'clock') == 1,
    p = m.paused, n = m.max_running > 0, r = m.rate > 0, u = keyed,
    f = keyed and string.find(m.uses, 'f', 1, true) ~= nil,
    l = stays('l', prefix .. 'schedule:h', prefix .. 'schedule:l'), x = stays('x', prefix .. 'expires'),
    m = has_marks(prefix),
    k = call('EXISTS', prefix .. 'done') > 0,
    c = call('EXISTS', prefix .. 'cron', prefix .. 'cron_named') > 0 }
end
