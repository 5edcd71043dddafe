-- Audit: the keys of a queue other than its jobs: whether they can be used at all, leftovers, the
-- baton. See lib/audit.lua. Comes before audit_jobs.
--
--  KEYS[1]  prefix      hf:{queue}:
--  ARGV[1]  phase       '' at the start, then that of the last answer
--  ARGV[2]  cursor      '0' at the start of a phase
--  ARGV[3]  idle        1: nothing is at work or waiting, so nothing may remain
--  ARGV[4]  fix         1: repair what is safe; 0: write nothing
--  ARGV[5]  not_after   ms on Redis's clock; 0: no limit. Behind it a word for this request, or none
--  returns  {OK, now, phase, cursor, looked at, {check, invariant, id, text, repair, how, ...},
--           {}} | {LATE, now}; phase and cursor are those to ask for next, phase '' at the end,
--           `stop` when nothing else can be asked of this queue. The first looked at is how many
--           ids there are. how: 0 by hand, 1 would be repaired, 2 repaired. Sent twice:
--           repaired faults are not found again.
--- @step "steps/guard.lua"
local known = answered(ARGV[5])
if known then
  return known
end
local uses = call('TYPE', META).ok == 'hash' and call('HGET', META, 'uses')
--- @step "steps/sharded.lua"
local FOLLOWS = {
  crashes = 'cancel', cancel = 'waits', waits = 'progress', progress = 'checkpoint', checkpoint = 'logs',
  logs = 'expires', expires = 'unique', unique = 'keys', keys = 'rest',
}
local types = TYPE_OF_KEY
for _, set in ipairs(SETS) do
  types[set] = 'zset'
end
local OF_META = {
  'max_running', 'rate_limit', 'rate_per', 'tokens', 'tokens_at', 'next_wake', 'fence', 'high', 'clock',
  'cron_by', 'cron_high', 'refused', 'born',
}
local ENDS = {
  seen = 86400000, last = 86400000, ended = 86400000, purged = 60000,
  told = 60000, answer = 86400000, past = 172800000, runs = 60000, -- at most, ms
}
local LISTS = { workers = true, told = true }
local LOCK_MS = 10000

-- Any other script would break off at these.
local function check_types()
  for name, expected in pairs(types) do
    local is = call('TYPE', P .. name).ok
    if is ~= 'none' and is ~= expected then
      report('type', 9, P .. name, 'is a ' .. is .. ', expected a ' .. expected,
        'see what it holds, then RENAME or DEL it; nothing works on this queue until then')
    end
  end
  for k, value in ipairs(#findings == 0 and call('HMGET', META, unpack(OF_META)) or {}) do
    if value and not tonumber(value) then
      report('type', 9, META, '`' .. OF_META[k] .. '` is no number',
        'HSET it right or HDEL it; nothing works on this queue until then')
    end
  end
end

-- Crashes belong to a job that waits or runs, a request to cancel and a progress to one that runs, a time
-- at which it expires to one that waits or is parked; a checkpoint and logs to a dead one, too.
local function check_marks(ids)
  local stays = phase == 'checkpoint' or phase == 'logs'
  local runs = scores_in(RUNNING, ids)
  local died = stays and scores_in(DEAD, ids) or {}
  for _, id in ipairs(ids) do
    local fits = phase ~= 'expires' and runs[id] or stays and died[id]
      or phase ~= 'cancel' and phase ~= 'progress' and waits_in(id)
      or (phase == 'expires' or phase == 'waits') and call('ZSCORE', PARKED, id)
    if not fits then
      report('mark', 9, id, 'has left a mark in `' .. phase .. '`', 'it is removed', function()
        call(phase == 'expires' and 'ZREM' or 'HDEL', P .. phase, id)
        if phase == 'logs' then
          call('DEL', LOG .. id)
        end
      end)
    end
  end
end

-- A unique key belongs to a job that holds it, or to a window that has not ended; its parked job is there.
local function check_unique(keys)
  for _, key in ipairs(keys) do
    local e = entry_of(call('HGET', UNIQUE, key))
    local state = e and holds(e)
    local waits = e and not state and call('ZSCORE', WINDOWS, key)
    if not e then
      report('unique', 9, key, 'its entry in `unique` cannot be read', 'it is freed', function()
        call('HDEL', UNIQUE, key)
      end)
    elseif not state and not waits then
      report('unique', 9, key, 'is held by the job ' .. e.id .. ', which is gone', 'it is freed', function()
        free_key(key, e, true)
      end)
    elseif e.parked ~= '' and not call('ZSCORE', PARKED, e.parked) then
      report('unique', 9, key, 'names the parked job ' .. e.parked .. ', which is gone', 'it names none',
        function()
          e.parked = ''
          call('HSET', UNIQUE, key, text_of(e))
        end)
    end
  end
end

local function check_log(key, id)
  if call('HEXISTS', LOGS, id) == 0 and call('PTTL', key) == -1 then -- steps/leaving.lua gives it an end
    report('mark', 9, id, 'has left a log', 'it is removed', function()
      call('DEL', key)
    end)
  end
end

-- A lock of an id that does not run. Only its holder, if that lives, could mean it.
local function check_lock(key, id)
  local set = waits_in(id) and 'schedule' or call('ZSCORE', DEAD, id) and 'dead'
  local text = set and 'is locked, but in `' .. set .. '`' or 'is locked, but is no job'
  local lock, left = call('TYPE', key).ok == 'string' and call('GET', key) or '', call('PTTL', key)
  local holder = string.match(lock, '^(.+):%d+$')
  local alive = tonumber(holder and call('ZSCORE', WORKERS, holder) or 0) > now
  if not alive then
    report('lock', 5, id, text, 'its lock is removed: its holder is gone', function()
      call('DEL', key)
    end)
  elseif left == -1 then
    report('lock', 5, id, text .. ', without an end', 'its lock gets an end', function()
      call('PEXPIRE', key, LOCK_MS)
    end)
  else
    report('lock', 5, id, text, 'wait: ' .. holder .. ' lives; it ends in ' .. left .. ' ms')
  end
end

local function check_end(key, kind)
  local is = call('TYPE', key).ok
  local expected = kind == 'runs' and 'stream'
    or kind == 'past' and not string.find(key, P .. 'past:@', 1, true) and 'hash' or 'string'
  if not LISTS[kind] and is ~= expected then
    report('type', 9, key, 'is a ' .. is .. ', expected a ' .. expected, 'see what it holds, then DEL it')
  elseif call('PTTL', key) == -1 then
    report('key', 9, key, 'has no end', 'it gets one', function()
      call('PEXPIRE', key, ENDS[kind] or 7200000)
    end)
  end
end

local function check_key(key)
  local rest = string.sub(key, #P + 1)
  local kind, id = string.match(rest, '^(%a+):(.*)$')
  if kind == 'lock' then
    if not call('ZSCORE', RUNNING, id) then
      check_lock(key, id)
    end
  elseif kind == 'log' then
    check_log(key, id)
  elseif ENDS[kind or rest] or LISTS[rest] then
    check_end(key, kind or rest)
  elseif not types[rest] then
    report('key', 9, key, 'is no key of a queue', 'see who wrote it, then DEL it')
  end
end

-- Done jobs that are kept: the same ones in all three keys, which end with them.
local function check_kept()
  local n = call('ZCARD', DONE)
  if call('ZCARD', KEPT) ~= n or call('HLEN', RESULTS) ~= (n > 0 and n + 1 or 0) then
    report('kept', 9, DONE, 'not the same jobs are in `done`, `kept` and `results`',
      'DEL these three keys; the results that are kept are lost then')
  end
  for _, key in ipairs({ DONE, KEPT, RESULTS }) do
    if call('PTTL', key) == -1 then
      report('kept', 9, key, 'has no end', 'it gets one', function()
        call('PEXPIRE', key, 86400000)
      end)
    end
  end
end

-- A baton that no worker keeps, because all that could have it are gone; letters of `uses`; leftovers.
local function check_rest()
  local m, batons = read_meta(), call('ZRANGE', WAKE, 0, 9)
  local function put()
    call('DEL', WAKE)
    call('HDEL', META, 'next_wake')
    m.next_wake = nil
    wake(m, true)
  end
  if #batons > 1 or (batons[1] and batons[1] ~= 'baton') then
    report('wake', 9, WAKE, 'holds more than one baton, or another thing', 'it is made anew', put)
  elseif m.next_wake and not batons[1] and not any_worker_lives() then
    report('wake', 10, META,
      string.format('a claim is due at %.0f, but no live worker knows of it', m.next_wake),
      'the baton is put for the next worker', put)
  end
  for letter, used in pairs(uses_now(m, P)) do
    if used and not has(m.uses, letter) then
      report('uses', 9, META, '`uses` lacks `' .. letter .. '`, so claims do not look at it',
        'it is added', function()
          note_use(letter, true)
        end)
    end
  end
  local baton = has(m.uses, SCHEDULES) and RUNNING or WAKE -- it is for the next tick
  local kept = call('EXISTS', RUNNING, CRASHES, CANCELS, WAITS, PROGRESS, baton, EXPIRES, unpack(levels()))
  if idle and kept > 0 then
    report('left', 9, P, 'something remains though nothing is to be done',
      'see what: holdfast job list')
  end
end

if phase == '' then
  check_types()
  if #findings > 0 then
    return looked_at(0, nil, 'stop')
  end
  local total = call('HLEN', JOBS)
  for _, set in ipairs(SETS) do
    total = total + call('ZCARD', P .. set)
  end
  return looked_at(total, nil, 'crashes')
elseif phase == 'rest' then
  check_rest()
  check_kept()
  return looked_at(0, nil, '')
end
local page, ids, seen = nil, {}, {}
if phase == 'keys' then
  page = call('SCAN', slice_from, 'MATCH', P .. '*', 'COUNT', 500)
else
  page = call(phase == 'expires' and 'ZSCAN' or 'HSCAN', P .. phase, slice_from, 'COUNT', 100)
end
for i = 1, #page[2], phase == 'keys' and 1 or 2 do
  if not seen[page[2][i]] then
    seen[page[2][i]] = true
    ids[#ids + 1] = page[2][i]
  end
end
if phase == 'keys' then
  for _, key in ipairs(ids) do
    check_key(key)
  end
elseif phase == 'unique' then
  check_unique(ids)
else
  check_marks(ids)
end
return looked_at(0, page[1] ~= '0' and page[1], FOLLOWS[phase])
