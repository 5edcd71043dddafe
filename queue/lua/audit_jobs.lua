-- Audit: every id in the sets of jobs, its lock and its record. See lib/audit.lua.
--
--  KEYS[1]  prefix      hf:{queue}:
--  ARGV[1]  phase       '' at the start, then that of the last answer
--  ARGV[2]  cursor      '0' at the start of a phase
--  ARGV[3]  idle        1: nothing is at work or waiting, so nothing may remain
--  ARGV[4]  fix         1: repair what is safe; 0: write nothing
--  ARGV[5]  not_after   ms on Redis's clock; 0: no limit. Behind it a word for this request, or none
--  returns  {OK, now, phase, cursor, looked at, {check, invariant, id, text, repair, how, ...},
--           {holder, jobs, until, ...}} | {LATE, now}; phase and cursor are those to ask for
--           next, phase '' at the end. how: 0 by hand, 1 would be repaired, 2 repaired; holder,
--           jobs, until: the holders of locks of this slice, ms. Sent twice: the same; without a word repaired faults
--           are not found again.
--- @step "steps/guard.lua"
local known = answered(ARGV[5])
if known then
  return known
end
local FOLLOWS = { jobs = '' }
for k, set in ipairs(SETS) do
  FOLLOWS[set] = SETS[k + 1] or 'jobs'
end
local LAST_FENCE = 9007199254740991 -- Lua counts no further
local m = read_meta()
phase = phase == '' and SETS[1] or phase

-- The fields that a worker must understand (queue/record.c). Options that are wrong do not count.
local READ = {
  { 'v', 1, 1 }, { 'created', 0, LAST_FENCE }, { 'max_attempts', 0, 4294967295 }, { 'timeout', 0, 4294967295 },
  { 'attempts', 0, 4294967295 }, { 'refused', 0, LAST_FENCE },
}

-- What is wrong with the record of a job; nil: a worker can read it.
local function fault_of(record)
  local nl = string.find(record, '\n', 1, true)
  local wrong, head = wrong_line(nl and string.sub(record, 1, nl - 1) or '', READ)
  if not wrong and head.error ~= nil and type(head.error) ~= 'string' then
    wrong = 'as its error a text'
  end
  return wrong and 'its record cannot be read: expected ' .. wrong
end

-- Whether scripts can read and rewrite it, although a worker cannot.
local function is_rewritable(record)
  local head = head_of(record)
  return head and (head.type or head.v) ~= nil
end

-- An unreadable line becomes a part of the payload: no data is lost.
local function to_dead(id, record, reason, text)
  for _, set in ipairs(SETS) do
    call('ZREM', P .. set, id)
  end
  bury(nil, id, is_rewritable(record) and record or '\n' .. record, reason, text)
end

-- It stays where a worker may have it; else where it runs again; else it is dead.
local function check_sets(id, scores)
  local names, keeps = {}, scores.running and 'running'
  for _, set in ipairs(SETS) do
    names[#names + 1] = scores[set] and '`' .. set .. '`'
    keeps = keeps or scores[set] and set
  end
  report('sets', 1, id, 'is in ' .. concat(names, ' and in '), 'it stays in `' .. keeps .. '`',
    function()
      for set in pairs(scores) do
        if set ~= keeps then
          call('ZREM', P .. set, id)
        end
      end
    end)
end

local function check_no_record(id, lock)
  local text = 'is in `' .. phase .. '` and has no record'
  if phase == 'running' and lock then
    report('record', 1, id, text, 'wait: its holder ends it; what it leaves, the next claim buries')
  elseif phase == 'dead' then
    report('record', 1, id, text, 'it is removed', function()
      leave('trimmed', { id }, DEAD)
    end)
  else
    report('record', 1, id, text, 'it goes to `dead` with the reason `record`', function()
      to_dead(id, '', 'record', 'its record was missing')
    end)
  end
end

-- Its holder may not have noticed yet, so it keeps the time that the score gives it.
local function check_no_lock(id, ends)
  if (call('HGET', META, 'clock') or 0) + 0 > now + 50 then
    return -- Redis's clock was set back, and may have ended locks before
  end
  local text = string.format('runs until %.0f, but has no lock', ends)
  if call('EXISTS', LOCK .. id) == 1 then
    report('type', 5, id, 'its lock is no text', 'DEL ' .. LOCK .. id .. '; it is taken over then')
  else
    report('lock', 5, id, text, 'wait: a worker may have it until then; then it is taken over')
  end
end

local function check_fence(id, fence)
  if not fence then
    report('lock', 3, id, 'its lock names no holder, so no stale token could be told from it',
      'wait: nobody can renew it; when it ends, the job is taken over')
  elseif tonumber(fence) > LAST_FENCE then
    report('fence', 6, id, 'its fence ' .. fence .. ' is none that was ever given out',
      'wait: when its lock ends, the job is taken over with one that is')
  elseif tonumber(fence) > m.fence then
    report('fence', 6, id, 'its fence is above the last one that was given out',
      'the fence of the queue is raised to it', function()
        m.fence = tonumber(fence)
        call('HSET', META, 'fence', fence)
      end)
  end
end

local function check_lock(id, ends, lock)
  local holder, fence = string.match(lock, '^([%w%._:-]+):(%d+)$')
  local left, of = call('PTTL', LOCK .. id), held_by[holder or ''] or { 0, 0 }
  held_by[holder or ''] = { of[1] + 1, math.max(of[2], ends) }
  check_fence(id, fence)
  if left == -1 then
    report('lock', 5, id, 'its lock has no end', 'it ends when its score says', function()
      call('PEXPIREAT', LOCK .. id, string.format('%.0f', ends))
    end)
    return
  end
  local off, at
  if left >= 0 and math.abs(now + left - ends) > 50 then
    off, at = off_by(id, ends)
  end
  if off then
    report('lock', 5, id, string.format('its lock ends %.0f ms %s its score says', math.abs(off),
      off > 0 and 'after' or 'before'), 'its score follows the lock', function()
        call('ZADD', RUNNING, 'XX', at, id)
      end)
  end
end

-- The key of a parked job names it, or else it would wait for ever.
local function check_parked(id, due)
  local key, head = key_of(call('HGET', JOBS, id))
  local e = key and entry_of(call('HGET', UNIQUE, key))
  if not e or e.parked ~= id then
    report('parked', 9, id, 'is parked, and follows no job', 'it waits as any other', function()
      call('ZREM', PARKED, id)
      call('ZADD', level_of(head and head.priority), due, id)
    end)
  end
end

-- scores: of this id, in each set where it is. A job is reported in the first of them.
local function check_member(id, scores, lock)
  local first
  for _, set in ipairs(SETS) do
    first = first or scores[set] and set
  end
  if phase == first and next(scores, next(scores)) then
    return check_sets(id, scores)
  end
  if call('HEXISTS', JOBS, id) == 0 then
    check_no_record(id, lock)
  elseif phase == 'running' and lock then
    check_lock(id, scores.running, lock)
  elseif phase == 'running' and scores.running > now + 50 then
    check_no_lock(id, scores.running)
  end
  if phase == 'parked' then
    check_parked(id, scores.parked)
  end
  if phase == 'running' and idle then
    report('left', 9, id, 'is still in `running`', 'look who has it: holdfast job show ' .. id)
  end
end

local function check_members(page)
  local ids, own, keys, all = {}, {}, {}, {}
  for i = 1, #page, 2 do
    if not own[page[i]] then -- a scan may name one twice
      ids[#ids + 1], keys[#keys + 1] = page[i], LOCK .. page[i]
      own[page[i]] = tonumber(page[i + 1])
    end
  end
  for _, set in ipairs(SETS) do
    all[set] = set == phase and own or scores_in(P .. set, ids)
  end
  local locks = #ids > 0 and call('MGET', unpack(keys)) or {}
  for k, id in ipairs(ids) do
    local scores = {}
    for _, set in ipairs(SETS) do
      scores[set] = all[set][id]
    end
    check_member(id, scores, locks[k])
  end
  return #ids
end

local function check_records(page)
  local ids, records = {}, {}
  for i = 1, #page, 2 do
    ids[#ids + 1] = not records[page[i]] and page[i] or nil
    records[page[i]] = page[i + 1]
  end
  local known, runs, died = {}, scores_in(RUNNING, ids), scores_in(DEAD, ids)
  for _, set in ipairs(SETS) do
    for id in pairs(scores_in(P .. set, ids)) do
      known[id] = true
    end
  end
  for _, id in ipairs(ids) do
    local record = records[id]
    if not known[id] then
      report('orphan', 1, id, 'has a record and is in no set',
        'it goes to `dead` with the reason `orphan`', function()
          to_dead(id, record, 'orphan', 'its record was in no set')
        end)
    else
      local fault = fault_of(record)
      if fault and died[id] and is_rewritable(record) then
        report('record', 1, id, fault, 'see it: holdfast job show ' .. id .. '; then delete it')
      elseif fault and runs[id] then
        report('record', 1, id, fault, 'wait: the next claim buries it')
      elseif fault then
        report('record', 1, id, fault, 'it goes to `dead` with the reason `record`', function()
          to_dead(id, record, 'record', fault)
        end)
      end
    end
  end
  return #ids
end

local whole, count_of = phase == 'jobs', 100
if whole and has(m.uses, LARGE) then
  count_of = 10 -- a page of records brings their payloads
end
local page = call(whole and 'HSCAN' or 'ZSCAN', P .. phase, slice_from, 'COUNT', count_of)
local n = (whole and check_records or check_members)(page[2])
return looked_at(n, page[1] ~= '0' and page[1], FOLLOWS[phase])
