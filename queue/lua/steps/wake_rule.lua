-- wake_rule.lua - how a worker is told when to claim (docs/design.md). `wake` holds at most one member,
-- the baton. Its score is the time, or 0 for at once: the worker that pops it knows this clock only by
-- the last answer. `next_wake` of `meta` is the time for which a worker has the baton or keeps its
-- timer. Only an earlier time wakes another one.
--
-- The rule is a step, and the last one of every script that can change when a claim could succeed. As
-- a function it would cost 2 to 4 % of an enqueue of one job (instructions of Redis).
-- Takes at: that time, nil: no time brings it about; next_wake; doubted: the next wake-up was this
-- worker's own, or its worker may be gone. Gives next_wake as it is then. Once a time has come while
-- nothing is due, others took what it was for.
--- @include "lib/keys.lua"
--- @include "lib/key_wake.lua"
--- @include "lib/broken_ms.lua"
if not at then
  if next_wake then
    call('DEL', WAKE)
    call('HDEL', META, 'next_wake')
  end
  next_wake = nil
elseif doubted or not next_wake or next_wake > at
  or next_wake < (at > now and now + 1 or now - BROKEN_MS) then
  local text = at <= now and stamp or string.format('%d', at)
  call('ZADD', WAKE, at <= now and '0' or text, 'baton')
  call('HSET', META, 'next_wake', text)
  next_wake = at
end
