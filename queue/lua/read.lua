-- For each of a worker's queues: read its clock, and find the leases that are over. Such a job gets the
-- score 0 in `running`, and the next claim takes it over.
--
--  KEYS[1..] prefixes    hf:{queue}: of queues on one server
--  ARGV[1]   machine     the worker's, at most 96 bytes
--  ARGV[2]   boot        ms on that machine's boot clock, before it was sent
--  ARGV[3..] shown       of each queue: what it has read last, `number:clock:boot:redis`, or ''
--            (lib/evidence.lua)
--  returns   {OK, now, {clock, number, after}, ...} of each: the reading, 0: no lease runs, or the queue
--            cannot be read; and in how many ms a lease may be over, 0: not known. Sent twice: the same.
--- @step "steps/guard.lua"
local boot, answer = ARGV[2] + 0, { OK, now }
local function read(i)
  local reading, over = read_clock(ARGV[1], boot, ARGV[2 + i])
  if over > 0 then
    wake(read_meta(), true)
  end
  return reading
end
for i = 1, #KEYS do
  use(KEYS[i])
  local done, reading = pcall(read, i)
  answer[2 + i] = done and reading or { 0, 0, 0 }
end
return answer
