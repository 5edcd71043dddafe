-- requests.lua - requests that come late, or again.

-- Whether a request comes after its time.
local function came_late(not_after)
  not_after = tonumber(not_after)
  return not_after > 0 and now > not_after
end

-- A request of an administrator that comes again, because its answer was lost, gets the first answer, and
-- changes nothing more: not even what others have changed since.
local time_limit, request

-- The answer to a request that is not executed: it comes late, or again. `not_after` may have a space and
-- a word for the request behind its time.
local function answered(not_after)
  time_limit, request = string.match(not_after, '^(%d+) ?(.*)$')
  local kept = request ~= '' and call('GET', P .. 'answer:' .. request)
  if kept then
    return cjson.decode(kept)
  end
  return came_late(time_limit) and { LATE, now } or nil
end

-- Of a request that has changed something. After its time it would be late.
local function keep_answer(reply)
  if request ~= '' then
    local life = time_limit == '0' and 60000 or math.max(1, time_limit - now + 1)
    call('SET', P .. 'answer:' .. request, cjson.encode(reply), 'PX', life)
  end
  return reply
end
