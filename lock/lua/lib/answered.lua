-- answered.lua - a request of an administrator that comes again, because its answer was lost, gets the
-- first answer, and changes nothing more: not even what others have changed since.
--- @include "lib/late.lua"

local limit, word

-- The answer to a request that is not executed: it comes late, or again. `not_after` may have a space and
-- a word for the request behind its time.
local function answered(not_after)
  limit, word = match(not_after, '^(%d+) ?(.*)$')
  local kept = word ~= '' and call('GET', P .. 'answer:' .. word)
  if kept then
    return cjson.decode(kept)
  end
  return late(limit) and { LATE, now } or nil
end

-- Of a request that has changed something. After its time it would be late.
local function answer(reply)
  if word ~= '' then
    local life = limit == '0' and 60000 or math.max(1, limit - now + 1)
    call('SET', P .. 'answer:' .. word, cjson.encode(reply), 'PX', life)
  end
  return reply
end
