-- marks.lua - what is kept beside a job: marks, and the clients that wait for its end.

-- Whether a job of a queue has a mark.
local function has_marks(prefix)
  return call('EXISTS', prefix .. 'crashes', prefix .. 'cancel', prefix .. 'waits', prefix .. 'progress',
    prefix .. 'checkpoint', prefix .. 'logs') > 0
end

-- What runs have left beside a job, for those that look at it.
local function marks_of(id, token)
  local fence, progress = string.match(call('HGET', PROGRESS, id) or '', '^(%d+) (.*)$')
  local told = fence and string.sub(token, -#fence - 1) == ':' .. fence
  local checkpoint = string.match(call('HGET', CHECKPOINTS, id) or '', '^%d+ %d+ %S+ (.*)$') or ''
  local _, runs = string.gsub(call('HGET', LOGS, id) or '', '%d+', '')
  return { told and progress or '', #checkpoint, runs }
end

-- A run is over, and its job goes back: its progress was that of the run.
local told_progress = call('EXISTS', PROGRESS) == 1

local function run_over(id)
  if told_progress then
    call('HDEL', PROGRESS, id)
  end
end

-- What a holder tells about its run: its progress, a checkpoint, lines of its log. The caller
-- has checked the token. Anything may be told twice.
local LOG_BYTES, LOG_RUNS = 65536, 10 -- of one run, and the last this many

-- `percent note`
local function tell_progress(id, fence, text)
  call('HSET', PROGRESS, id, fence .. ' ' .. text)
end

-- `number bytes`; no bytes: none any more. A later checkpoint of the same run has a higher number:
-- two connections may change their order. The digest of the one at the last crash stays
-- (lib/take_over.lua).
local function tell_checkpoint(id, fence, text)
  local number, bytes = string.match(text, '^(%d+) (.*)$')
  local before = call('HGET', CHECKPOINTS, id) or ''
  local old_fence, old_number, digest = string.match(before, '^(%d+) (%d+) (%S+) ')
  if old_fence == fence and old_number + 0 > number + 0 then
    return
  elseif bytes == '' then
    call('HDEL', CHECKPOINTS, id)
  else
    call('HSET', CHECKPOINTS, id, concat({ fence, number, digest or '-', bytes }, ' '))
  end
end

-- `attempt from bytes`: bytes of the log, behind this many others. Where some are missing in between,
-- these are all that is kept.
local function tell_log(id, fence, text)
  local attempt, from, bytes = string.match(text, '^(%d+) (%d+) (.*)$')
  local runs, log = call('HGET', LOGS, id) or '', call('HGET', LOG .. id, fence)
  local known, kept = string.match(log or '0 0 ', '^%d+ (%d+) (.*)$')
  local to, new = from + #bytes, known - from
  if to <= known + 0 then
    return
  end
  if runs == '' then
    call('DEL', LOG .. id) -- of an earlier job of this id (steps/leaving.lua)
  end
  kept = string.sub(new < 0 and bytes or kept .. string.sub(bytes, new + 1), -LOG_BYTES)
  call('HSET', LOG .. id, fence, concat({ attempt, string.format('%d', to), kept }, ' '))
  if log then
    return
  end
  local _, n = string.gsub(runs, '%d+', '')
  if n >= LOG_RUNS then
    local first, others = string.match(runs, '^(%d+) (.*)$')
    call('HDEL', LOG .. id, first)
    runs = others
  end
  call('HSET', LOGS, id, runs == '' and fence or runs .. ' ' .. fence)
end

local tell = { progress = tell_progress, checkpoint = tell_checkpoint, log = tell_log }

-- The end of one job of an id, for the clients that wait for it.
--
-- While the job waits or runs, `waits` says of it `<accepted> <client> ...`: when it was accepted, ms, and who
-- waits; `*` is a client that has not come yet. Its exit turns this into END: `<ms> <how> <client> ...`. That
-- lasts a day, and a minute when each of these clients has read it. No two jobs of one id have one `accepted`.
local function end_of(id, accepted)
  return P .. 'ended:@' .. accepted .. ':' .. id
end

local CLIENTS = 100 -- of one job; more of them ask again

-- `accepted` of the job of this id; a new job gets the present time, or one that no earlier job of its id has.
-- again: one more client of this name waits.
local function note_wait(id, client, accepted, again)
  local at, clients = string.match(call('HGET', WAITS, id) or '', '^(%d+)(.*)$')
  local n = 0
  for _ in string.gmatch(clients or '', '%S+') do
    n = n + 1
  end
  if not at then
    at, clients = accepted or stamp, ''
    while not accepted and call('EXISTS', end_of(id, at)) == 1 do
      at = string.format('%.0f', at + 1)
    end
    note_use(MARKS, true)
  end
  if n < CLIENTS and (again or not string.find(clients .. ' ', ' ' .. client .. ' ', 1, true)) then
    call('HSET', WAITS, id, at .. clients .. ' ' .. client)
  end
  return at
end

-- The clients that wait for a job that ends.
local TOLD_AS = { purged = 'deleted', trimmed = 'deleted', replaced = 'cancelled' }

-- note: what `waits` says of it. The end is there before they are told.
local function tell_end(id, note, how)
  local accepted, clients = string.match(note, '^(%d+)(.*)$')
  if not accepted then
    return
  end
  call('SET', end_of(id, accepted), stamp .. ' ' .. (TOLD_AS[how] or how) .. clients, 'PX', '86400000')
  for client in string.gmatch(clients, '[^%s*]+') do
    call('RPUSH', P .. 'told:' .. client, id)
    call('PEXPIRE', P .. 'told:' .. client, '60000')
  end
end
