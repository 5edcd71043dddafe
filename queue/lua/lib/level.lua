-- level.lua - the sets of the jobs that wait, one for each level.

-- Where jobs wait: what stands behind `schedule` in the names of these sets, in the order in which a claim takes from
-- them. '' is the usual level. The others exist only while the queue uses LEVELS.
local LEVELS_BEHIND = { ':h', '', ':l' }
local OF_PRIORITY = { high = ':h', low = ':l' }

-- The sets of all levels, or of all but the usual one.
local function levels(but_the_usual)
  local sets = {}
  for _, behind in ipairs(LEVELS_BEHIND) do
    sets[#sets + 1] = (behind ~= '' or not but_the_usual) and SCHEDULE .. behind or nil
  end
  return sets
end

-- Those in which a job may wait.
local function levels_used(uses)
  return has(uses, LEVELS) and levels() or { SCHEDULE }
end

-- When the first job of all levels is due; nil: none waits.
local function first_due(uses)
  local first
  for _, set in ipairs(levels_used(uses)) do
    local score = tonumber(call('ZRANGE', set, 0, 0, 'WITHSCORES')[2])
    first = score and (not first or score < first) and score or first
  end
  return first
end

-- The set of the jobs with this `priority` in their record; any other value is normal.
local function level_of(priority)
  return SCHEDULE .. (priority and OF_PRIORITY[priority] or '')
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

-- Of this many places how many go to each set: the shares of the oldest jobs.
local function oldest_of_all(sets, shares)
  local counts, heads = {}, {}
  for k, set in ipairs(sets) do
    counts[k] = 0
    heads[k] = shares > 0 and call('ZRANGE', set, '0', shares - 1, 'WITHSCORES')
  end
  for _ = 1, shares do
    local first, least = nil, math.huge
    for k = 1, #sets do
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
  local sets, due, all, plan = levels(), {}, 0, {}
  for k, set in ipairs(sets) do
    due[k] = all <= want and call('ZCOUNT', set, '-inf', stamp) or 0
    all = all + due[k]
  end
  local n = math.min(want, all)
  local shares = floor((turn + n) / TURN) - floor(turn / TURN)
  local counts, left = oldest_of_all(sets, shares), n - shares
  for k, set in ipairs(sets) do
    local strict = math.min(left, math.max(0, due[k] - counts[k]))
    left = left - strict
    if counts[k] + strict > 0 then
      plan[#plan + 1] = { set, counts[k] + strict }
    end
  end
  return plan, all > n, turn + n
end
