-- forget_done.lua - an id that is accepted again is no done job any more: a step of the scripts that
-- accept jobs. Takes uses; records, from which each second one is an id, and new, how many ids.
if uses and string.find(uses, 'k', 1, true) then
  --- @include "lib/keeping.lua"
  for from = 1, 2 * new, 4000 do
    local ids = {}
    for j = from, math.min(from + 3999, 2 * new), 2 do
      ids[#ids + 1] = records[j]
    end
    forget_kept(ids)
  end
end
