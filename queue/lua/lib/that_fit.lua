-- that_fit.lua - records that are large.

-- How many of the first n ids have records that fit into so many bytes; at least one, if `first`.
local function that_fit(ids, n, room, first)
  for k = 1, n do
    room = room - call('HSTRLEN', JOBS, ids[k])
    if room < 0 and (k > 1 or not first) then
      return k - 1
    end
  end
  return n
end
