-- to_front.lua - jobs that were refused. They wait, so that the same worker does not claim them again at once; then
-- they go to the head of their level, where they were claimed from. At the end of what is due they would wait for a
-- whole backlog, longer with each refusal.

-- Id -> the score with which it waits. One that has another score by now, or none, was claimed or moved meanwhile.
local function refused_key()
  return P .. 'refused'
end

-- The key outlives the longest wait, and no job in it has to be looked for by anything else.
local REFUSED_MS = 60000

local function goes_to_front(id, due)
  call('ZADD', refused_key(), due, id)
  call('PEXPIRE', refused_key(), REFUSED_MS)
end

local function to_front()
  local over = call('ZRANGEBYSCORE', refused_key(), '-inf', stamp, 'WITHSCORES', 'LIMIT', 0, 250)
  for k = 1, #over, 2 do
    for _, set in ipairs(levels()) do
      if call('ZSCORE', set, over[k]) == over[k + 1] then
        call('ZADD', set, call('ZRANGE', set, 0, 0, 'WITHSCORES')[2], over[k])
      end
    end
  end
  if #over > 0 then
    call('ZREMRANGEBYRANK', refused_key(), 0, #over / 2 - 1)
  end
end
