-- unique_keys.lua - the unique keys of a request. A step of enqueue_with.
--
-- Takes what steps/unique_request.lua takes; usual, starting; named: the keys; keyed: how many. Mostly each job
-- takes a free key, which it frees at its end. Else that step decides on each.
local held, plain = {}, usual and now >= high
for from = 1, keyed, SLICE do
  local values = call('HMGET', UNIQUE, unpack(named, from, math.min(from + SLICE - 1, keyed)))
  for i = 1, #values do
    local key = named[from + i - 1]
    plain = plain and not values[i] and held[key] == nil -- not named twice
    held[key] = values[i]
  end
end
if plain then
  for i = 1, 2 * keyed, SLICE do
    call('HSET', UNIQUE, unpack(entries, i, math.min(i + SLICE - 1, 2 * keyed)))
  end
else
  --- @step "steps/unique_request.lua"
end
if not (uses and string.find(uses, 'u', 1, true)) then
  note_use('u', true)
end
if starting and not (uses and string.find(uses, 'f', 1, true)) then
  note_use('f', true)
end
