-- level.lua - the sets of the jobs that wait, one for each level.

-- Where jobs wait: `schedule` has those of the normal level, and each other level has a set
-- of its own. They exist only while the queue uses LEVELS.

-- All of them, the highest level first.
local function levels()
  return { SCHEDULE .. ':h', SCHEDULE, SCHEDULE .. ':l' }
end

-- When the first job of all levels is due; nil: none waits.
local function first_due(uses)
  local first
  for _, set in ipairs(has(uses, LEVELS) and levels() or { SCHEDULE }) do
    local score = tonumber(call('ZRANGE', set, 0, 0, 'WITHSCORES')[2])
    first = score and (not first or score < first) and score or first
  end
  return first
end

local LEVEL_SETS = { high = ':h', low = ':l' } -- behind the name of SCHEDULE

-- The set of the jobs with this `priority` in their record; any other value is normal.
local function level_of(priority)
  return SCHEDULE .. (priority and LEVEL_SETS[priority] or '')
end

-- The set in which this id waits, and its score there; nil: it does not wait.
local function waits_in(id)
  for _, set in ipairs(levels()) do
    local score = call('ZSCORE', set, id)
    if score then
      return set, score
    end
  end
end

-- How a claim divides its places among the levels. A higher level comes first. But of every eight jobs that are handed out one is the oldest of all
-- levels, so no job waits for ever. `turn` of meta counts the jobs across claims.
local TURN = 8

-- Of so many places how many go to each set: the shares of the oldest jobs.
local function oldest_of_all(sets, shares)
  local counts, heads = { 0, 0, 0 }, {}
  for k = 1, shares > 0 and 3 or 0 do
    heads[k] = call('ZRANGE', sets[k], '0', shares - 1, 'WITHSCORES')
  end
  for _ = 1, shares do
    local first, least = nil, math.huge
    for k = 1, 3 do
      local score = heads[k][2 * counts[k] + 2]
      if score and score + 0 < least then
        first, least = k, score + 0
      end
    end
    counts[first] = counts[first] + 1
  end
  return counts
end

-- Returns {{set, how many of its first jobs}, ...} for at most `want` due jobs, whether there are more,
-- and the turn behind them. It counts no more than it has to.
local function by_level(want, turn)
  local sets, due, all, plan = levels(), { 0, 0, 0 }, 0, {}
  for k = 1, 3 do
    if all <= want then
      due[k] = call('ZCOUNT', sets[k], '-inf', stamp)
      all = all + due[k]
    end
  end
  local n = math.min(want, all)
  local shares = floor((turn + n) / TURN) - floor(turn / TURN)
  local counts, left = oldest_of_all(sets, shares), n - shares
  for k = 1, 3 do
    local strict = math.min(left, math.max(0, due[k] - counts[k]))
    left = left - strict
    if counts[k] + strict > 0 then
      plan[#plan + 1] = { sets[k], counts[k] + strict }
    end
  end
  return plan, all > n, turn + n
end
