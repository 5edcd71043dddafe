-- wake_rule.lua - how a worker is told when to claim (docs/design.md). `wake` holds at most one member,
-- the baton. Its score is the time, or 0 for at once: the worker that pops it knows this clock only by
-- the last answer. `next_wake` of `meta` is the time for which a worker has the baton or keeps its
-- timer. Only an earlier time wakes another one.
--- @include "lib/keys.lua"
--- @include "lib/key_wake.lua"
--- @include "lib/broken_ms.lua"

-- The rule: every script that can change when a claim could succeed, `at`, ends with it; nil: no time
-- brings that about. Once a time has come while nothing is due, others took what it was for.
-- `doubted`: the next wake-up was this worker's own, or its worker may be gone. `ask`: only says
-- whether another one is due. `high`: also notes the time of this clock. Returns the next wake-up if
-- this changes it; nil: a worker comes in time.
local function wake_rule(at, next_wake, doubted, ask, high)
  if not at then
    if next_wake then
      call('DEL', WAKE)
      call('HDEL', META, 'next_wake')
    end
  elseif doubted or not next_wake or next_wake > at
    or next_wake < (at > now and now + 1 or now - BROKEN_MS) then
    if not ask then
      local text = at <= now and stamp or string.format('%d', at)
      call('ZADD', WAKE, at <= now and '0' or text, 'baton')
      if high then
        call('HSET', META, 'next_wake', text, 'high', stamp)
      else
        call('HSET', META, 'next_wake', text)
      end
    end
    return at
  end
end
