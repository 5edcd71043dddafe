-- unique_again.lua - dead jobs that run again.

-- A dead job takes its unique key again. False: another one holds it.
local function take_again(id, key, head)
  local e = holder_of(key)
  if e and e.id ~= id then
    return false
  elseif e then
    call('ZREM', WINDOWS, key)
  else
    call('HSET', UNIQUE, key, text_of({ id = id, keeps = keeps_of(head), window = 0, first = 0 }))
    note_use('u', true)
    if keeps_of(head) == 's' then
      note_use('f', true)
    end
  end
  return true
end
