-- put_back.lua - jobs that wait again.

-- To the set of its level. A job that has not started yet expires when it would have; one that has, never
-- does. `uses` of meta tells whether there is anything to look for.
local function put_back(id, due, uses, started)
  local record = uses and string.find(uses, '[lux]') and call('HGET', JOBS, id)
  local head = record and head_of(record) or {}
  local home = level_of(head.priority)
  call('ZADD', home, due, id)
  if head.start_by and started then
    call('HSET', JOBS, id, rewrite(record, function(line)
      line.start_by = nil
    end))
  elseif head.start_by then
    call('ZADD', EXPIRES, string.format('%d', head.start_by), id)
  end
  if head.unique then
    back_to_wait(id, home, due)
  end
end
