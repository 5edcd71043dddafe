-- meta.lua - the fields of `meta`: what a queue uses, its counters, its limits.

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

-- The features that a queue uses beyond the usual: letters in `uses` of meta, in any order.
-- p: it is paused; n: it has max_running; r: it has a rate; b: it has had a record above 8 KiB;
-- m: a job has a mark (lib/marks.lua); s: it is divided into shards; l: a job has a high
-- or low priority (lib/level.lua); x: a job expires (lib/expiry.lua); k: done jobs are kept
-- (lib/keeping.lua); c: it has schedules; u: a job has a unique key (lib/unique.lua); f: a job frees its
-- unique key when it starts; e: leases are over by readings (lib/readings.lua). Without a letter no script
-- reads the keys of its feature: one field instead of four, and no EXISTS. A worker that meets a letter it does
-- not know leaves the queue alone.
local function note_use(letter, on)
  local uses = call('HGET', META, 'uses') or ''
  local others = string.gsub(uses, letter, '')
  if on and others == uses then
    call('HSET', META, 'uses', uses .. letter)
  elseif not on and others ~= uses then
    if others == '' then
      call('HDEL', META, 'uses')
    else
      call('HSET', META, 'uses', others)
    end
  end
end

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
