-- Take a queue off the list of all queues, which it has left (remove).
--
--  KEYS[1]  prefix     of the registry, hf:{/}:
--  ARGV[1]  not_after  ms on Redis's clock; 0: no limit. Behind it a word for this request, or none
--  ARGV[2]  name       the queue's
--  returns  {OK, now} | {LATE, now}. Sent twice: the same; with a word a queue that was registered in
--           between stays.
--- @step "steps/guard.lua"
local known = answered(ARGV[1])
if known then
  return known
end
call('SREM', P .. 'queues', ARGV[2])
return keep_answer({ OK, now })
