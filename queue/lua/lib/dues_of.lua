-- dues_of.lua - when each of many jobs is due.

-- The due time of each of the first n ids of a set; they are in order, and the first k of them are due
-- at the same time. Reading a score costs as much as a command, because Redis prints it with 17 digits:
-- if many have the same, they are counted.
local function dues_of(set, ids, n, due, k)
  local dues, runs = {}, 1
  for i = 1, k do
    dues[i] = due
  end
  while k < n and k + n / 8 > 4 * runs do
    due = call('ZSCORE', set, ids[k + 1])
    local to = math.min(n, k + call('ZCOUNT', set, due, due))
    for i = k + 1, to do
      dues[i] = due
    end
    k, runs = to, runs + 1
  end
  for i, score in ipairs(k < n and call('ZMSCORE', set, unpack(ids, k + 1, n)) or {}) do
    dues[k + i] = score
  end
  return dues
end
