-- limits.lua - how many jobs may start: max_running, and the token bucket of a rate.
--- @include "lib/keys.lua"

-- The token bucket: how many jobs may start now. It holds a tenth of a period's jobs: no second
-- gets much more than its rate. It is full when the clock was set back, by over 1 s.
-- `back`: so many are put back now.
local function tokens(m, back)
  local burst, ms = math.max(1, floor(m.rate / 10)), now - m.tokens_at
  return math.min(burst, (ms > -1000 and m.tokens or burst) + math.max(0, ms) * m.rate / m.per
    + (back or 0))
end

-- Jobs that were claimed and never started cost nothing: each gives its token back. (One that was
-- taken over paid none; but its takeover was free, and so is its return.)
local function refund(m, unstarted)
  if m.rate > 0 and unstarted > 0 then
    m.tokens, m.tokens_at = tokens(m, unstarted), now
    call('HSET', META, 'tokens', string.format('%.6f', m.tokens), 'tokens_at', stamp)
  end
  return m
end

-- When the rate lets the next job start; 0: now.
local function next_token(m)
  local have = m.rate > 0 and tokens(m) or 1
  return have < 1 and now + math.ceil((1 - have) * m.per / m.rate) or 0
end

-- How many of `free` places the limits leave for jobs that are due; so many can start at once.
local function free_places(m, free, slots)
  if m.max_running > 0 or m.rate > 0 then
    free = math.min(free, slots)
  end
  if m.max_running > 0 then
    free = math.min(free, m.max_running - call('ZCARD', RUNNING))
  end
  if m.rate > 0 then
    m.tokens, m.tokens_at = tokens(m), now
    free = math.min(free, floor(m.tokens))
  end
  return free
end
