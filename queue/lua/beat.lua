-- A worker says that it is alive, or goodbye. The only script outside of a queue's hash tag.
--
--  KEYS[1]  workers  the registry: worker id -> alive until
--  KEYS[2]  worker   its heartbeat
--  ARGV[1]  id       the worker's
--  ARGV[2]  alive    ms for which this heartbeat holds; 0: goodbye
--  ARGV[3]  json     the heartbeat
--  returns  {OK, now}. Sent twice: the same.
--- @include "lib/base.lua"
--- @include "lib/bounds.lua"
--- @include "lib/digits.lua"
local alive = digits(ARGV[2], DELAY_MAX)
if alive == 0 then
  call('DEL', KEYS[2])
  call('ZREM', KEYS[1], ARGV[1])
  return { OK, now }
end
-- Those that went silent more than a day ago are forgotten.
call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - 86400000)
call('ZADD', KEYS[1], now + alive, ARGV[1])
call('SET', KEYS[2], ARGV[3], 'PX', ARGV[2])
return { OK, now }
