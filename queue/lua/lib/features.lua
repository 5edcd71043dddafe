-- features.lua - what a queue may use beyond the usual: one line for each feature.
--
-- `uses` of `meta` has a letter of each feature that the queue uses, in any order. Without the letter no script reads the
-- keys of the feature: one field instead of four, and no EXISTS. A worker that meets a letter it does not know leaves
-- the queue alone. Behind a letter stands when the queue has it, and the keys and fields that show it.
-- tests/unit/features.py writes the table of docs/keys.md from these lines, and checks all else against them.
local PAUSE = 'p' -- it is paused | `paused` of `meta`
local MAX_RUNNING = 'n' -- it has `max_running` | `max_running` of `meta`
local RATE = 'r' -- it has a rate | `rate_limit` of `meta`
local LARGE = 'b' -- it has had a record above 8 KiB: claims weigh records from then on |
local MARKS = 'm' -- a job has a mark | `crashes` `cancel` `waits` `progress` `checkpoint` `logs`
local SHARDS = 's' -- it is divided into shards | `shards` of `meta`
local LEVELS = 'l' -- a job has a high or low priority | `schedule:h` `schedule:l`
local EXPIRY = 'x' -- a job may expire | `expires`
local KEEPING = 'k' -- done jobs are kept | `done`
local SCHEDULES = 'c' -- it has schedules | `cron` `cron_named`
local UNIQUE_KEYS = 'u' -- a job has a unique key | `unique`
local FREED_AT_START = 'f' -- a job frees its unique key when it starts: without it claims look for no such job | `unique`
local CLOCK_READ = 'e' -- its clock was read, and leases are over by readings | `clock` of `meta`

-- Patterns, each for one look at `uses`.
local UNKNOWN = '[^bcefklmnprsux]' -- no feature of this version
local CLOSER = '[^befklmux]' -- a claim looks closer at such a queue (claim.lua): the others cost it less
local DELAYS = '[npr]' -- a job that is due may have to wait
local FREES = '[n]' -- a job that ends may let another one start sooner
local BESIDE = '[lu]' -- jobs wait in other sets, too
local STAYS = '[lux]' -- a job has something that it keeps when it waits again

-- Whether a queue uses it. `uses` false or nil: it uses nothing.
--- @inline
local function has(uses, feature)
  return uses and string.find(uses, feature, 1, true)
end

-- The same of any letter of a pattern.
--- @inline
local function has_any(uses, pattern)
  return uses and string.find(uses, pattern)
end

local function note_use(feature, on)
  local uses = call('HGET', META, 'uses') or ''
  local others = string.gsub(uses, feature, '')
  if on and others == uses then
    call('HSET', META, 'uses', uses .. feature)
  elseif not on and others ~= uses then
    if others == '' then
      call('HDEL', META, 'uses')
    else
      call('HSET', META, 'uses', others)
    end
  end
end

-- By `meta` and the keys of the queue with this prefix: a letter, and whether it uses that. LARGE is not among them,
-- because only the records tell it, and SHARDS never changes. A running job may wait again, at its level and until
-- it expires, so LEVELS and EXPIRY stay while one runs. Any job may come to take its unique key again, so
-- UNIQUE_KEYS stays while one is there.
local function uses_now(m, prefix)
  local runs = call('EXISTS', prefix .. 'running') == 1
  local function stays(feature, ...)
    return call('EXISTS', ...) > 0 or runs and has(m.uses, feature) ~= nil
  end
  local keyed = call('EXISTS', prefix .. 'unique') > 0 or has(m.uses, UNIQUE_KEYS) ~= nil
    and call('EXISTS', prefix .. 'jobs') > 0
  return { [CLOCK_READ] = call('HEXISTS', prefix .. 'meta', 'clock') == 1,
    [PAUSE] = m.paused, [MAX_RUNNING] = m.max_running > 0, [RATE] = m.rate > 0,
    [UNIQUE_KEYS] = keyed, [FREED_AT_START] = keyed and has(m.uses, FREED_AT_START) ~= nil,
    [LEVELS] = stays(LEVELS, unpack(levels(true))),
    [EXPIRY] = stays(EXPIRY, prefix .. 'expires'), [MARKS] = has_marks(prefix),
    [KEEPING] = call('EXISTS', prefix .. 'done') > 0,
    [SCHEDULES] = call('EXISTS', prefix .. 'cron', prefix .. 'cron_named') > 0 }
end
