-- audit.lua - what the scripts of the audit share. Each of them looks at a slice, and judges each id or key, and
-- puts it right if that is asked for, at one instant: so a queue in use gives no false findings, and no job is
-- taken out of the hands of its holder. Their arguments and answers are the same.

local phase, slice_from, idle, fix = ARGV[1], ARGV[2], ARGV[3] == '1', ARGV[4] == '1'
local findings, held_by, written = {}, {}, false

-- mend: repairs it. nil: only a person or time can; then `repair` says how.
local function report(check, invariant, id, text, repair, mend)
  local how = mend and (fix and 2 or 1) or 0
  for _, value in ipairs({ check, invariant, id, text, repair, how }) do
    findings[#findings + 1] = value
  end
  if how == 2 then
    if not written then
      open_writes()
      written = true
    end
    mend()
  end
end

-- The answer. Repairs may have changed the time of the next wake-up.
local function looked_at(n, following, follows)
  if written then
    wake(read_meta())
  end
  local list = {}
  for worker, held in pairs(held_by) do
    list[#list + 1], list[#list + 2], list[#list + 3] = worker, held[1], held[2]
  end
  local reply = { OK, now, following and phase or follows, following or '0', n, findings, list }
  return written and keep_answer(reply) or reply
end

local function clock_ms()
  local t = call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end

-- By how much a lock ends after `ends`, and when it does; nil: by 50 ms at most. Before Redis 7.2,
-- PTTL uses a clock that runs on during a script, but `now` does not. A machine that stops in the
-- middle of the script must not cause a finding.
local function off_by(id, ends)
  local before = clock_ms()
  local left = call('PTTL', LOCK .. id)
  local first, last = before + left - ends, clock_ms() + left - ends
  if first > 50 or last < -50 then
    return first > 50 and first or last, last + ends
  end
end

-- Whether a worker may believe that it holds a job of this queue. A worker counts as alive for
-- its lease and 15 s beyond, and believes nothing any more when its lease is over.
local lives
local function any_worker_lives()
  if lives == nil then
    lives = call('ZCOUNT', WORKERS, string.format('(%.0f', now), '+inf') > 0
  end
  return lives
end

-- The sets of a queue's jobs, as the audit goes through them: behind the prefix.
local function sets_of_jobs()
  local sets = { 'schedule' }
  for _, set in ipairs(levels(true)) do
    sets[#sets + 1] = string.sub(set, #P + 1)
  end
  for _, set in ipairs({ 'running', 'dead', 'parked' }) do
    sets[#sets + 1] = set
  end
  return sets
end

local SETS = sets_of_jobs()

-- The scores of many ids in one set: id -> score.
local function scores_in(set, ids)
  local scores = {}
  for k, score in ipairs(#ids > 0 and call('ZMSCORE', set, unpack(ids)) or {}) do
    scores[ids[k]] = tonumber(score or nil)
  end
  return scores
end

-- The order in which Redis has ids; Lua's own order depends on the locale.
local function is_before(a, b)
  for i = 1, math.min(#a, #b) do
    local x, y = string.byte(a, i), string.byte(b, i)
    if x ~= y then
      return x < y
    end
  end
  return #a < #b
end
