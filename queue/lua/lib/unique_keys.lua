-- unique_keys.lua - the unique keys of a request. A step of enqueue_with.
--
-- Takes records, heads, dues, places, new, n, codes, put, uses. Gives those of the jobs that are left,
-- soonest, codes, and conflicts, if there are any. The answer is kept as long as the number of the request.
--- @include "lib/key_unique.lua"
--- @include "lib/put_jobs.lua"
local keys, held, pairs_of, plain = {}, {}, {}, now >= high -- plain: each takes a free key until its end
for k = 1, new do
  local head = heads[k]
  local key = head.unique
  if key then
    keys[#keys + 1] = key
    pairs_of[#pairs_of + 1], pairs_of[#pairs_of + 2] = key, records[2 * k - 1] .. ' e 0 0'
    plain = plain and not (head.unique_until or head.unique_for or head.debounce or head.throttle)
  end
end
for from = 1, #keys, SLICE do
  local values = call('HMGET', UNIQUE, unpack(keys, from, math.min(from + SLICE - 1, #keys)))
  for i = 1, #values do
    local key = keys[from + i - 1]
    plain = plain and not values[i] and held[key] == nil -- not named twice
    held[key] = values[i]
  end
end
if plain then
  for i = 1, #pairs_of, SLICE do
    call('HSET', UNIQUE, unpack(pairs_of, i, math.min(i + SLICE - 1, #pairs_of)))
  end
  put(1, new)
else
  --- @include "lib/unique_request.lua"
  local r = { records = records, heads = heads, dues = dues, places = places, codes = codes or {}, put = put }
  new, soonest = take_keys(r, new, held)
  if #conflicts_met > 0 or r.taken then
    codes, conflicts = r.codes, #conflicts_met > 0 and conflicts_met or nil
    for k = 1, n do
      codes[k] = codes[k] or OK
    end
    if ARGV[1] ~= '' then
      local answer = P .. 'answer:' .. ARGV[1] .. ':' .. ARGV[2]
      call('SET', answer, cjson.encode({ codes, conflicts }), 'PX', ARGV[4])
    end
  end
end
note_used(uses, 'u')
