-- one_job.lua - a job as it is answered to a reader.

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
