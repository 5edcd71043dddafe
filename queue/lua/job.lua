-- One job.
--
--  KEYS[1]  prefix      hf:{queue}:
--  ARGV[1]  id
--  ARGV[2]  whole       1: with its payload; 0: only the first line of its record
--  returns  {OK, now, set, score, record, payload bytes, token, lease, crashes, kept}
--           | {GONE, now, ended, purged, word}
--           set: `schedule`, `running`, `dead` or `done`; token and lease (ms left) of a running
--           job, else '' and 0; record '' if it is missing or has no first line; of a done job its
--           line and its result, and kept: until when it is kept, else 0.
--           ended: when a job of this id ended without being done, purged: when a slice of the
--           queue was, each within the last minute; else 0. word: how it ended, `cancelled`,
--           `deleted` or `expired`, else ''. A job whose time is over is told as expired, or as
--           dead, also while it still waits.
--- @include "lib/guard.lua"
--- @include "lib/keys.lua"
--- @include "lib/key_lock.lua"
--- @include "lib/key_crashes.lua"
--- @include "lib/time_of.lua"
--- @include "lib/place_of.lua"
--- @include "lib/as_expired.lua"
local uses = call('HGET', META, 'uses')
--- @step "lib/sharded.lua"
local id = ARGV[1]
local name, score, kept = place_of(id, uses)
local record = name and call('HGET', name == 'done' and RESULTS or JOBS, id) or ''
if name == 'expired' then
  local at, dead = as_expired(id, record)
  if not dead then
    return { GONE, now, at, 0, 'expired' }
  end
  name, score, record = 'dead', at, dead
end
if name then
  local lease = math.max(0, call('PTTL', LOCK .. id))
  local mark = call('HGET', CRASHES, id) or '0'
  local nl = string.find(record, '\n', 1, true) or 0
  return {
    OK, now, name, time_of(score), ARGV[2] == '1' and record or string.sub(record, 1, nl),
    #record - nl, call('GET', LOCK .. id) or '', lease, tonumber(string.match(mark, '^%d+')) or 0,
    kept,
  }
end
local function word_of(key)
  local ms, word = string.match(call('GET', P .. key) or '', '^(%d+) (%a+)')
  return tonumber(ms or 0), word or ''
end
local ended, word = word_of('ended:' .. id)
local purged = string.match(call('GET', P .. 'purged') or '', '^%d+')
return { GONE, now, ended, tonumber(purged or 0), word }
