-- keeping.lua - done jobs that are kept for a while.
--
-- `done` has the time at which each ended, `kept` the time until which it is kept, `results` a line
-- about it and its result. The field '' of `results` counts the bytes of all others: so it ends with
-- them. All three end with the last job, also where no script comes any more.
--- @include "lib/key_kept.lua"
--- @include "lib/uses.lua"

-- Forgets those of these ids, at most 3,000, that are kept. Returns how many.
local function forget_kept(ids)
  local gone, bytes = {}, 0
  for k, ended in ipairs(#ids > 0 and call('ZMSCORE', DONE, unpack(ids)) or {}) do
    if ended then
      gone[#gone + 1] = ids[k]
      bytes = bytes + call('HSTRLEN', RESULTS, ids[k])
    end
  end
  if #gone > 0 then
    call('ZREM', DONE, unpack(gone))
    call('ZREM', KEPT, unpack(gone))
    call('HDEL', RESULTS, unpack(gone))
    call('HINCRBY', RESULTS, '', -bytes)
    if call('EXISTS', DONE) == 0 then
      call('DEL', RESULTS)
      note_use('k', false)
    end
  end
  return #gone
end

local function forget_over()
  return forget_kept(call('ZRANGEBYSCORE', KEPT, '-inf', stamp, 'LIMIT', 0, 500))
end
