-- places.lua - where a job is, and how a reader is informed of it.

-- `schedule` (of whatever level), `running`, `dead` or `parked`, and its score; nil: there is no such job.
-- And the set in which it waits. `expired`: it waits or is parked, but its time is over.
local function found_in(id)
  local set, score = waits_in(id)
  if set then
    return is_late(id) and 'expired' or 'schedule', score, set
  end
  for _, name in ipairs({ 'running', 'dead', 'parked' }) do
    score = call('ZSCORE', P .. name, id)
    if score then
      return name == 'parked' and is_late(id) and 'expired' or name, score
    end
  end
end

-- As found_in(), or `done` and when it ended; nil: there is none. Then until when it is kept, else 0; and
-- the set in which it waits.
local function place_of(id, uses)
  local name, score, set = found_in(id)
  if name then
    return name, score, 0, set
  end
  local kept = has(uses, KEEPING) and call('ZSCORE', KEPT, id)
  if kept and kept + 0 > now then
    return 'done', call('ZSCORE', DONE, id) or 0, floor(kept)
  end
end

-- How a job of this id ended, for one that is gone.
local function how_it_ended(id)
  local ms, word = string.match(call('GET', P .. 'ended:' .. id) or '', '^(%d+) (%a+)')
  local purged = string.match(call('GET', P .. 'purged') or '', '^%d+')
  return { GONE, now, tonumber(ms or 0), tonumber(purged or 0), word or '' }
end

-- As the header of `job` says.
local function one_job(id, whole, uses)
  local name, score, kept = place_of(id, uses)
  if not name then
    return how_it_ended(id)
  end
  local record = call('HGET', name == 'done' and RESULTS or JOBS, id) or ''
  if name == 'expired' then
    local at, dead = as_expired(id, record)
    if not dead then
      return { GONE, now, at, 0, 'expired' }
    end
    name, score, record = 'dead', at, dead
  end
  local lease = lease_left(id)
  local mark = call('HGET', CRASHES, id) or '0'
  local nl, token = string.find(record, '\n', 1, true) or 0, call('GET', LOCK .. id) or ''
  return {
    OK, now, name, time_of(score), whole and record or string.sub(record, 1, nl), #record - nl,
    token, lease, tonumber(string.match(mark, '^%d+')) or 0, kept, job_before(name, id, record),
    marks_of(id, token),
  }
end

-- accepted: ms; '0': the one that is there. noted: its client has noted in `waits` that it waits for it. As the
-- header of `job` says; and what END says of it.
local function accepted_job(id, whole, uses, accepted, noted)
  local said = accepted ~= '0' and call('GET', end_of(id, accepted))
  if said then
    local ms, word = string.match(said, '^(%d+) (%a+)')
    local set = word == 'done' and DONE or word == 'dead' and DEAD
    if set and tonumber(call('ZSCORE', set, id) or 0) == ms + 0 then
      return one_job(id, whole, uses), said
    end
    return { GONE, now, ms + 0, 0, word, 1 }, said
  end
  local answer = one_job(id, whole, uses)
  if answer[1] ~= OK then
    return answer
  end
  local at = string.match(call('HGET', WAITS, id) or '', '^%d+')
  if accepted ~= '0' and (at and at + 0 > accepted + 0 or not at and noted) then
    return { GONE, now, 0, 0, '' } -- another job has this id
  end
  answer[13] = tonumber(at or accepted)
  return answer
end
