-- Which of a worker's queues could be claimed now? Reads only.
--
--  KEYS[1..] prefixes  hf:{queue}: of queues on one server
--  returns   {OK, now, {1 or 0, ...}}; 0 also for a queue whose keys cannot be read: a claim of
--            it will say why. Sent twice: the same.
--- @step "steps/guard.lua"
local ready = {}
for i = 1, #KEYS do
  use(KEYS[i])
  local read, at = pcall(function()
    return next_claim(read_meta(), now)
  end)
  ready[i] = read and at and at <= now and 1 or 0
end
return { OK, now, ready }
