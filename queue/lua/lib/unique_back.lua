-- unique_back.lua - jobs that wait again.

-- A job that ran waits in `set` again, and is due then. One that freed its key when it started takes it
-- again, if it is free. One that another job follows ends here: that one takes its place.
local function back_to_wait(id, set, due)
  local key, head = key_of(call('HGET', JOBS, id) or '')
  local e = key and entry_of(call('HGET', UNIQUE, key))
  if e and e.id == id and e.parked ~= '' and expire_late(e.parked) then
    e = entry_of(call('HGET', UNIQUE, key))
  end
  if not key then
    return
  elseif e and e.id == id and e.parked ~= '' then
    unpark(key, e, math.max(due, e.window))
    leave('replaced', { id }, set)
  elseif e and e.id == id then
    call('ZREM', WINDOWS, key)
    if e.first > 0 then -- a debounce counts from what comes now
      e.first = 0
      call('HSET', UNIQUE, key, text_of(e))
    end
  elseif keeps_of(head) == 's' and not (e and holder_of(key)) then
    call('HSET', UNIQUE, key, text_of({ id = id, keeps = 's', window = 0, first = 0 }))
  end
end
