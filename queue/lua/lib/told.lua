-- told.lua - what a holder tells of its run: its progress, a checkpoint, lines of its log. The caller
-- has checked the token. Anything may be told twice.

local LOG_BYTES, LOG_RUNS = 65536, 10 -- of one run, and the last so many

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

-- `attempt from bytes`: bytes of the log, behind so many others. Where some are missing in between,
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

local tell = { p = tell_progress, c = tell_checkpoint, l = tell_log }
