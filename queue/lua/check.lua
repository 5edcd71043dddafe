-- For each of a worker's queues: it is alive, and a promise that nobody keeps is made anew.
--
--  KEYS[1..] prefixes    hf:{queue}: of queues on one server
--  ARGV[1]   worker      its id
--  ARGV[2]   alive       ms for which it counts as alive; 0: no change
--  ARGV[3]   give_back   1: it had the batons and cannot use them: they are put back
--  returns   {OK, now, empty, {doubt, ...}}; empty 1: nothing is scheduled or running in any of
--            them. doubt, of each: from then on a lease is over and the promise that somebody
--            comes for its job counts as broken; 0: no lease ends soon. A queue that cannot be
--            checked (a key of another type) is left out: its doubt is 0, and it is not empty; the
--            answer is its error only if that is so of all. Sent twice: the same.
local empty, checked, fault, doubts = 1, 0, nil, {}
local function check(i)
  if ARGV[2] ~= '0' then
    refresh_worker(ARGV[1], tonumber(ARGV[2]))
  end
  local m = read_meta()
  local _, over = baton(m, ARGV[3] == '1')
  doubts[i] = over and math.max(over, m.promised + BROKEN_MS + 1) or 0
  return call('EXISTS', SCHEDULE, RUNNING)
end
for i = 1, #KEYS do
  use(KEYS[i])
  doubts[i] = 0
  local done, found = pcall(check, i)
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
return { OK, now, empty, doubts }
