-- wake.lua - when the next claim could succeed, and jobs that wait again.

-- A script that does not know when the next claim could succeed looks at its end, and follows the wake rule.

-- The earliest time at which a claim could take a job; nil: not by time alone. `earliest`: for what has come by
-- now, as a job whose lease is over.
local function next_taking(m, earliest)
  if m.paused then
    return nil
  end
  local at = call('ZRANGE', RUNNING, 0, 0, 'WITHSCORES')[2] == '0' and earliest or nil
  if m.max_running > 0 and call('ZCARD', RUNNING) >= m.max_running then
    return at
  end
  local head = first_due(m.uses)
  if head then
    local due = math.max(head, next_token(m))
    due = due >= now + 1 and due or earliest
    at = at and math.min(at, due) or due
  end
  return at
end

-- The same of a claim that could do anything: jobs expire also while none can be taken.
local function next_claim(m, earliest)
  local at = next_taking(m, earliest)
  if has(m.uses, EXPIRY) then
    local by = tonumber(call('ZRANGE', EXPIRES, 0, 0, 'WITHSCORES')[2])
    at = by and at and math.min(at, by) or by or at
  end
  if not m.paused and has(m.uses, SCHEDULES) then
    local tick = next_tick()
    at = tick and math.min(at or tick, tick) or at
  end
  return at
end

-- The caller has begun to write. `earliest`: not before this for what has come by now (a claim that got
-- nothing must not leave a baton that is due; but what comes later is not put off). A score beyond all time
-- (inf, 1e300) is not due: without the bound it would not be a number for Redis, and a worker would send
-- useless claims for ever. Returns the time at which a claim could succeed (0: not by time alone).
local function wake(m, doubted, earliest)
  m.high = heed_clock(m.high)
  local at = next_claim(m, earliest or now)
  at = at and math.min(TIME_MAX, math.max(floor(at), now))
  local next_wake = m.next_wake
  --- @step "steps/wake_rule.lua"
  m.next_wake = next_wake
  return at or 0
end

-- The time of the next tick; of one that is due and that a worker has taken, the time at which
-- another worker should come for it. nil: there is none.
local function next_tick()
  local head = tonumber(call('ZRANGE', P .. 'cron_next', 0, 0, 'WITHSCORES')[2] or false)
  if not head or head > now then
    return head
  end
  local by = tonumber(call('HGET', META, 'cron_by') or 0)
  return by <= now + 1000 and math.max(head, by) or head -- later only if this clock was set back
end

-- To the set of its level. A job that has not started yet expires when it would have; one that has, never
-- does. `uses` of meta tells whether there is anything to look for.
local function put_back(id, due, uses, started)
  local record = has_any(uses, STAYS) and call('HGET', JOBS, id)
  local head = record and head_of(record) or {}
  local home = level_of(head.priority)
  call('ZADD', home, due, id)
  if head.start_by and started then
    call('HSET', JOBS, id, rewrite(record, function(line)
      line.start_by = nil
    end))
  elseif head.start_by then
    call('ZADD', EXPIRES, string.format('%d', head.start_by), id)
  end
  if head.unique then
    back_to_wait(id, home, due)
  end
end
