-- owned.lua - which jobs a worker holds.
--- @include "lib/keys.lua"
--- @include "lib/key_lock.lua"

-- Whose jobs are these? ARGV (or `args`) from `first` in steps of `step`: id, fence, ... of
-- `worker`. Returns the places there of those it holds, and a code for each, none if it holds all;
-- counts the others, where the first `resent` were sent before: that their lock is gone probably
-- means that they did it.
local function owned(worker, first, step, resent, args)
  args = args or ARGV
  local keys, n = {}, 0
  for i = first, #args, step do
    n = n + 1
    keys[n] = LOCK .. args[i]
  end
  local places, codes, seen, lost, unsure = {}, {}, {}, 0, 0
  local fence, token -- one claim gives many jobs the same
  local holders = n > 0 and call('MGET', unpack(keys))
  local divided -- since they were claimed: then JOBS is no hash
  for k = 1, n do
    local i = first + (k - 1) * step
    local id = args[i]
    if args[i + 1] ~= fence then
      fence = args[i + 1]
      token = worker .. ':' .. fence
    end
    if holders[k] == token and not seen[id] then
      seen[id], codes[k] = true, OK
      places[#places + 1] = i
    else
      divided = divided or call('HEXISTS', META, 'shards')
      codes[k] = divided == 0 and call('HEXISTS', JOBS, id) == 1 and LOST or GONE
      if k > resent then
        lost = lost + 1
      elseif codes[k] == LOST then
        unsure = unsure + 1
      end
    end
  end
  return places, #places < n and codes or nil, lost, unsure
end
