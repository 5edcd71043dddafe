-- Forget a worker that went silent without a goodbye.
--
--  KEYS[1]  prefix     of the registry, hf:{/}:
--  ARGV[1]  id         the worker's
--  ARGV[2]  not_after  ms on Redis's clock; 0: no limit
--  returns  {OK, now, forgotten} | {LATE, now}; forgotten 0: it has been heard of again, or is
--           not in the registry. Sent twice: 0.
--- @step "steps/guard.lua"
if came_late(ARGV[2]) then
  return { LATE, now }
end
local workers = P .. 'workers'
local score = call('ZSCORE', workers, ARGV[1])
if not score or tonumber(score) > now or call('EXISTS', P .. 'worker:' .. ARGV[1]) == 1 then
  return { OK, now, 0 }
end
return { OK, now, call('ZREM', workers, ARGV[1]) }
