-- count_crash.lua - the crashes of a job: its holder died with it, or the process that ran it.

-- The number of crashes of a job, and their text.
local function crashes_of(id)
  local n, story = string.match(call('HGET', CRASHES, id) or '', '^(%d*)(.*)$')
  return tonumber(n) or 0, story
end

-- Whether its checkpoint is another one than at its last crash, whose digest it has.
local function advanced(id)
  local head, digest, bytes = string.match(call('HGET', CHECKPOINTS, id) or '', '^(%d+ %d+) (%S+) (.*)$')
  local present = bytes and redis.sha1hex(bytes)
  if not bytes or present == digest then
    return false
  end
  call('HSET', CHECKPOINTS, id, concat({ head, present, bytes }, ' '))
  return true
end

-- One crash more for this id. `who` tells who died and how, with the text of earlier ones. nil: it is counted; else
-- it was the last one: how many times, who and when. A job that makes progress is not poison: its crash counts as
-- the first.
local function count_crash(id, poison, who)
  local n, story = crashes_of(id)
  if advanced(id) then
    n, story = 0, ''
  end
  n, story = n + 1, concat({ story, '; ', who(story), ' ', date_of(now) })
  if n >= poison then
    return n .. ' times' .. story
  end
  call('HSET', CRASHES, id, n .. story)
  note_use('m', true)
end
