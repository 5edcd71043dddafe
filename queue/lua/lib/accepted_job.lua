-- accepted_job.lua - the job of an id that was accepted at a time, which may have ended since.

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
