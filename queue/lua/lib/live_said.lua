-- live_said.lua - what the live workers of the queue have said of themselves (present).

local all_said

-- A text of each; false: it has not said anything yet.
local function live_said()
  if all_said then
    return all_said
  end
  all_said = {}
  local alive
  repeat
    alive = call('ZREVRANGEBYSCORE', WORKERS, '+inf', stamp, 'LIMIT', #all_said, 1000)
    for _, text in ipairs(#alive > 0 and call('HMGET', HANDLES, unpack(alive)) or {}) do
      all_said[#all_said + 1] = text
    end
  until #alive < 1000
  return all_said
end
