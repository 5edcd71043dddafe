-- unique_named.lua - the unique keys that a worker names.

-- From ARGV behind `last` on: the place of a job among those from `first` on, and its key. Returns them
-- for those of the ids from `from` on that have one: {ids, keys}.
local function named_keys(ids, from, last, first)
  local keys_of, found, keys = {}, {}, {}
  if from == first then -- it holds all of them
    for i = last + 1, #ARGV, 2 do
      found[#found + 1], keys[#keys + 1] = ids[first + ARGV[i] - 1], ARGV[i + 1]
    end
    return { found, keys }
  end
  for i = last + 1, #ARGV, 2 do
    keys_of[ARGV[first + ARGV[i] - 1]] = ARGV[i + 1]
  end
  for k = from, #ids do
    local key = keys_of[ids[k]]
    if key then
      found[#found + 1], keys[#keys + 1] = ids[k], key
    end
  end
  return { found, keys }
end
