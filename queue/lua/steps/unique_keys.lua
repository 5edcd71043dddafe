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
if not has(uses, UNIQUE_KEYS) then
  note_use(UNIQUE_KEYS, true)
end
if starting and not has(uses, FREED_AT_START) then
  note_use(FREED_AT_START, true)
end
