-- Give back the jobs of a claim whose answer was lost. Sent after that claim's not_after, when it
-- cannot be executed any more. A job with a request to cancel is removed. None of these jobs has
-- started, so each gives its token of the rate back.
--
--  KEYS[1]  prefix   hf:{queue}:
--  ARGV[1]  worker   its id
--  ARGV[2]  number   of the claim
--  returns  {OK, now, jobs released}. Sent twice, the second releases none.
--- @step "steps/guard.lua"
open_writes()
local number, fence, lease_end, jobs = string.match(
  call('GET', P .. 'last:' .. ARGV[1]) or '', '^(%S+) (%S+) (%S+) (.*)$')
if number ~= ARGV[2] then
  return { OK, now, 0 }
end

-- A lock that is missing may have ended by this clock alone. The lease of a later holder ends later.
local function is_ours(id)
  local token = call('GET', LOCK .. id)
  return token == ARGV[1] .. ':' .. fence or not token and call('ZSCORE', RUNNING, id) == lease_end
end

local uses, due, released = call('HGET', META, 'uses'), nil, 0
for word in string.gmatch(jobs, '%S+') do
  if string.sub(word, 1, 1) == '=' then -- when those are due that follow
    due = math.min(string.sub(word, 2) + 0, now) -- it was due, though this clock was set back
  elseif is_ours(word) then
    if not cancelled(word, fence) then
      call('ZREM', RUNNING, word)
      put_back(word, due, uses, false)
      call('DEL', LOCK .. word)
    end
    released = released + 1
  end
end
if released > 0 then
  wake(refund(read_meta(), released), true)
end
return { OK, now, released }
