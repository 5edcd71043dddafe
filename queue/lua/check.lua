-- For each of a worker's queues: it is alive, and a promise that nobody keeps is made anew.
--
--  KEYS[1..] prefixes    hf:{queue}: of queues on one server
--  ARGV[1]   worker      its id
--  ARGV[2]   alive       ms for which it counts as alive; 0: no change
--  ARGV[3]   give_back   1: it had the batons and cannot use them: they are put back
--  returns   {OK, now, empty}; empty 1: nothing is scheduled or running in any of them. A queue
--            that cannot be checked (a key of another type) is left out, and is not empty; the
--            answer is its error only if that is so of all. Sent twice: the same.
local empty, checked, fault = 1, 0, nil
local function check()
  if ARGV[2] ~= '0' then
    refresh_worker(ARGV[1], tonumber(ARGV[2]))
  end
  baton(read_meta(), ARGV[3] == '1')
  return call('EXISTS', SCHEDULE, RUNNING)
end
for i = 1, #KEYS do
  use(KEYS[i])
  local done, found = pcall(check)
  if done then
    checked = checked + 1
  else
    fault = found
  end
  if not done or found > 0 then
    empty = 0
  end
end
if checked == 0 and fault then
  error(fault)
end
return { OK, now, empty }
