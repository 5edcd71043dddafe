-- A worker says that it is alive, or goodbye.
--
--  KEYS[1]  prefix  of the registry, hf:{/}:
--  ARGV[1]  id      the worker's
--  ARGV[2]  alive   ms for which this heartbeat holds; 0: goodbye
--  ARGV[3]  json    the heartbeat
--  returns  {OK, now, watched}; watched: 1: somebody looks at runs (runs.lua). Sent twice: the same.
--- @step "steps/guard.lua"
local alive, workers, heartbeat = digits(ARGV[2], DELAY_MAX), P .. 'workers', P .. 'worker:' .. ARGV[1]
if alive == 0 then
  call('DEL', heartbeat)
  call('ZREM', workers, ARGV[1])
  return { OK, now, 0 }
end
-- Those that went silent more than a day ago are forgotten.
call('ZREMRANGEBYSCORE', workers, '-inf', now - 86400000)
call('ZADD', workers, now + alive, ARGV[1])
call('SET', heartbeat, ARGV[3], 'PX', ARGV[2])
return { OK, now, call('EXISTS', P .. 'watch') }
