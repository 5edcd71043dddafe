-- claiming.lua - the steps of a claim, in the order in which claim.lua takes them. `c` is the claim:
--   worker, token, fence, lease, lease_end
--   uses, high, next_wake   of `meta`, as the script found them
--   ended, late     a lease is over; the time of a job that waits is over
--   refused         jobs may wait that other workers have refused
--   doubted         the next wake-up is
--   limits          `meta`, if the claim has looked closer; nil: nothing there counts
--   max, free       how many jobs it may take, and how many of those that are due
--   n, ids, records what it has taken, and `due` of all of them, or `dues` of each; bytes: of the records
--   over            this many of them, the first ones, were taken over
--   more            whether more jobs are due; nil: not known
--   turn            of levels
--   odd             {id, set} of each that is locked elsewhere; {id}: it has no record
--   buried          {id, why, ...} of those that died here
--   wait            ms until a claim that came to nothing may be repeated

-- Reads the queue, and makes the token of the claim.
local function open_claim(worker, max, lease, baton)
  local meta = call('HMGET', META, 'next_wake', 'fence', 'uses', 'high', 'clock', 'refused')
  local ended = call('ZRANGE', RUNNING, '0', '0', 'WITHSCORES')[2] == '0'
  local next_wake, clock, fence = meta[1] and meta[1] + 0, meta[5], time[1] .. micros
  if meta[2] and meta[2] + 0 >= fence + 0 then
    fence = string.format('%d', meta[2] + 1)
  end
  --- @step "steps/lease_end.lua"
  local come = next_wake and next_wake <= now -- the time of the baton that was put last
  return {
    worker = worker, token = worker .. ':' .. fence, fence = fence, lease = lease, lease_end = lease_end,
    uses = meta[3], high = (meta[4] or 0) + 0, next_wake = next_wake, ended = ended,
    refused = meta[6] and meta[6] + 0 > now,
    doubted = baton == 'due' and come or baton == 'doubted',
    max = max, free = max, n = 0, over = 0, bytes = 0, ids = {}, records = {}, wait = 10,
  }
end

-- Whether the time of a job that waits is over.
local function is_one_late()
  local by = call('ZRANGE', EXPIRES, '0', '0', 'WITHSCORES')[2]
  return by and by + 0 <= now
end

-- Lets jobs expire, takes over those of dead holders, and looks how many others may run.
local function look_closer(c, slots, rules)
  if has_any(c.uses, UNKNOWN) then
    error('holdfast: the queue uses what this version does not know: `' .. c.uses .. '` in ' .. META, 0)
  end
  local m = read_meta()
  m.high = now < c.high and heed_clock(c.high) or m.high
  if c.late then
    c.buried = {}
    c.max = expire_due(c.buried) and 0 or c.max -- it comes back at once, for the others
  end
  if c.ended and not m.paused then
    c.dues, c.buried = {}, c.buried or {}
    take_over(c, string.match(rules, '^%d+') + 0)
  end
  if c.buried then -- jobs have ended here: one that followed waits now. If its time is over,
    m = read_meta() -- this worker comes back at once
    c.max = has(m.uses, EXPIRY) and call('ZCOUNT', EXPIRES, '-inf', stamp) > 0 and c.n or c.max
  end
  c.uses, c.limits = m.uses, m
  c.free = free_places(m, c.max - c.n, slots - c.n)
  c.free = m.paused and 0 or c.free
end

-- What else ends here: jobs without a record are buried, and those that start may free their unique keys. If other
-- jobs may wait now, also at a level that had none, this worker comes back at once.
local function end_others(c, rules)
  local buried = c.buried or {}
  for _, odd in ipairs(c.odd or {}) do
    local id, set = odd[1], odd[2]
    if set then
      wait_for_lock(set, id, c.lease)
    else
      put_away(buried, nil, id, '', 'record', 'its record was missing')
    end
  end
  local unparked = has(c.uses, FREED_AT_START) and free_at_start(c.ids, c.records, c.over + 1, c.n)
  if #buried > 0 then
    local dead_max, dead_age = string.match(rules, ' (%d+) (%d+)$')
    trim_dead(dead_max + 0, dead_age + 0, #buried / 2)
    c.buried = buried
  end
  if unparked or #buried > 0 then
    c.more, c.wait = nil, 0
    if c.limits then
      c.limits.uses = call('HGET', META, 'uses') or ''
    end
  end
end

-- What `last` says of jobs that are due at different times: `=due`, then the ids for which it is.
local function with_dues(ids, dues, n)
  local words = {}
  for k = 1, n do
    words[k] = dues[k] == dues[k - 1] and ids[k] or '=' .. dues[k] .. ' ' .. ids[k]
  end
  return words
end

-- In ms: for a day, because a step of this clock may end the key. As text, like all that a claim sends.
local LAST_MS = '86400000'

local function remember(c, number)
  local words, m = c.ids, c.limits
  if c.dues then
    words = with_dues(words, c.dues, c.n)
  end
  words[0] = number .. ' ' .. c.fence .. ' ' .. c.lease_end .. (c.dues and '' or ' =' .. c.due)
  call('SET', P .. 'last:' .. c.worker, concat(words, ' ', 0, c.n), 'PX', LAST_MS)
  if not m and now > c.high + HIGH_MS then
    call('HSET', META, 'fence', c.fence, 'high', stamp)
  else
    call('HSET', META, 'fence', c.fence)
  end
  if c.turn then
    call('HSET', META, 'turn', c.turn)
  end
  if m and m.rate > 0 then
    m.tokens = m.tokens - (c.n - c.over)
    call('HSET', META, 'tokens', string.format('%.6f', m.tokens), 'tokens_at', stamp)
  end
end

-- Follows the wake rule where all that can bring a claim about has to be looked at.
local function wake_by_all(c)
  open_writes()
  return wake(c.limits or read_meta(), c.doubted, c.n == 0 and not c.ended and now + c.wait or now)
end

-- 1 if more is due than all other workers could take, else 0.
local function more_left(c)
  local m, others = c.limits, call('ZCOUNT', WORKERS, stamp, '+inf') - 1
  if others <= 0 then
    return 1
  elseif m and (m.max_running > 0 or m.rate > 0) then
    return 0
  end
  local due = 0
  for _, set in ipairs(levels_used(c.uses)) do
    due = due + call('ZCOUNT', set, '-inf', stamp)
  end
  return due > c.max * others and 1 or 0
end

-- The answer.
local function hand_out(c, at, more, crashes)
  local n, ids, records, buried = c.n, c.ids, c.records, c.buried
  local answer = { OK, now, c.fence, at, more, crashes, buried and #buried > 0 and buried or 0,
    n > 0 and (c.dues or c.due) or nil, ids[1], records[1] }
  if n > 32 then -- two tables in the answer cost less than to copy this many into it
    ids[n + 1], answer[9], answer[10] = nil, ids, records
  end
  for k = 2, n <= 32 and n or 0 do
    answer[2 * k + 7], answer[2 * k + 8] = ids[k], records[k]
  end
  return answer
end
