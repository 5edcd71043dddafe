-- For each of a worker's queues: it is alive, and a promise that nobody keeps is made anew.
--
--  KEYS[1..] prefixes    hf:{queue}: of queues on one server
--  ARGV[1]   worker      its id
--  ARGV[2]   alive       ms for which it counts as alive; 0: no change
--  ARGV[3]   give_back   1: it had the batons and cannot use them: they are put back
--  returns   {OK, now, empty}; empty 1: nothing is scheduled or running in any of them.
--            Sent twice: the same.
local empty = 1
for i = 1, #KEYS do
  use(KEYS[i])
  if ARGV[2] ~= '0' then
    refresh_worker(ARGV[1], tonumber(ARGV[2]))
  end
  baton(read_meta(), ARGV[3] == '1')
  if call('EXISTS', SCHEDULE, RUNNING) > 0 then
    empty = 0
  end
end
return { OK, now, empty }
