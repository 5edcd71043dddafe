-- One slice of the audit: at most 500 ids, each judged at one instant, so that a queue in use
-- gives no false findings.
--
--  KEYS[1]  prefix      hf:{queue}:
--  ARGV[1]  phase       schedule, running, dead, jobs, crashes, cancel, keys or rest
--  ARGV[2]  cursor      '0' at the start of a phase
--  ARGV[3]  idle        1: nothing is at work or waiting, so nothing may remain
--  returns  {OK, now, phase, cursor, {invariant, id, text, ...}}; phase and cursor are those to
--           ask for next, '' at the end
local phase, cursor, idle, COUNT = ARGV[1], ARGV[2], ARGV[3] == '1', 500
local FOLLOWS = {
  schedule = 'running', running = 'dead', dead = 'jobs', jobs = 'crashes', crashes = 'cancel',
  cancel = 'keys', keys = 'rest', rest = '',
}
local m, found, following = read_meta(), {}, nil

local function report(invariant, id, text)
  found[#found + 1], found[#found + 2], found[#found + 3] = invariant, id, text
end

local function in_set(set, id)
  return call('ZSCORE', set, id)
end

local function check_lock(id, ends)
  local holder, left = call('GET', LOCK .. id), call('PTTL', LOCK .. id)
  if not holder then
    if ends > now + 50 then
      report(5, id, 'runs until ' .. floor(ends) .. ', but has no lock')
    end
    return
  end
  local fence = string.match(holder, '^[%w%._:-]+:(%d+)$')
  if not fence then
    report(3, id, 'its lock names no holder, so no stale token could be told from it')
  elseif tonumber(fence) > m.fence then
    report(6, id, 'its fence is above the last one that was given out')
  end
  if left < 0 then
    report(5, id, 'its lock has no end')
  elseif math.abs(now + left - ends) > 50 then
    report(5, id, 'its lock ends ' .. floor(now + left - ends) .. ' ms after its score says')
  end
end

local function check_member(id, score)
  local others = { schedule = { RUNNING, DEAD }, running = { DEAD }, dead = {} }
  for _, set in ipairs(others[phase]) do
    if in_set(set, id) then
      report(1, id, 'is in `' .. phase .. '` and in `' .. string.sub(set, #P + 1) .. '`')
    end
  end
  if call('HEXISTS', JOBS, id) == 0 then
    report(1, id, 'is in `' .. phase .. '` and has no record')
  end
  if phase == 'running' then
    check_lock(id, score)
  elseif not in_set(RUNNING, id) and call('EXISTS', LOCK .. id) == 1 then
    report(5, id, 'is locked, but in `' .. phase .. '`')
  end
  if idle and phase == 'running' then
    report(9, id, 'is still in `running`')
  end
end

local function check_field(id)
  if phase == 'jobs' then
    if not (in_set(SCHEDULE, id) or in_set(RUNNING, id) or in_set(DEAD, id)) then
      report(1, id, 'has a record and is in no set')
    end
  elseif phase == 'crashes' then
    if not in_set(SCHEDULE, id) and not in_set(RUNNING, id) then
      report(9, id, 'has left a mark in `crashes`')
    end
  elseif not in_set(RUNNING, id) then
    report(9, id, 'has left a mark in `cancel`')
  end
end

local WITH_END = {
  seen = true, last = true, workers = true, lock = true, ended = true, purged = true,
}
local WITHOUT = {
  schedule = true, running = true, dead = true, jobs = true, meta = true, crashes = true,
  cancel = true, wake = true,
}
local function check_key(key)
  local rest = string.sub(key, #P + 1)
  local kind, id = string.match(rest, '^(%a+):?(.*)$')
  if WITHOUT[rest] then
    return
  elseif not kind or not WITH_END[kind] then
    report(9, key, 'is no key of a queue')
  elseif kind == 'lock' then
    if not in_set(RUNNING, id) and not in_set(SCHEDULE, id) and not in_set(DEAD, id) then
      report(5, id, 'is locked, but is no job')
    end
  elseif call('PTTL', key) == -1 then
    report(9, key, 'has no end')
  end
end

if phase == 'schedule' or phase == 'running' or phase == 'dead' then
  local first = tonumber(cursor)
  local members = call('ZRANGE', P .. phase, first, first + COUNT - 1, 'WITHSCORES')
  for i = 1, #members, 2 do
    check_member(members[i], tonumber(members[i + 1]))
  end
  following = #members == 2 * COUNT and tostring(first + COUNT) or nil
elseif phase == 'jobs' or phase == 'crashes' or phase == 'cancel' then
  local page = call('HSCAN', P .. phase, cursor, 'COUNT', COUNT)
  for i = 1, #page[2], 2 do
    check_field(page[2][i])
  end
  following = page[1] ~= '0' and page[1] or nil
elseif phase == 'keys' then
  local page = call('SCAN', cursor, 'MATCH', P .. '*', 'COUNT', COUNT)
  for _, key in ipairs(page[2]) do
    check_key(key)
  end
  following = page[1] ~= '0' and page[1] or nil
elseif phase == 'rest' then
  local batons = call('ZRANGE', WAKE, 0, -1)
  if #batons > 1 or (batons[1] and batons[1] ~= 'baton') then
    report(9, WAKE, 'holds more than one baton, or another thing')
  end
  if idle and call('EXISTS', SCHEDULE, RUNNING, CRASHES, CANCELS, WAKE) > 0 then
    report(9, P, 'something remains though nothing is to be done')
  end
end
if following then
  return { OK, now, phase, following, found }
end
return { OK, now, FOLLOWS[phase], '0', found }
