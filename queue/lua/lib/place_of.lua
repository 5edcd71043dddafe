-- place_of.lua - where a job is, also one that is done and kept.

-- As found_in(), or `done` and when it ended; nil: there is none. Then until when it is kept, else 0; and
-- the set in which it waits.
local function place_of(id, uses)
  local name, score, set = found_in(id)
  if name then
    return name, score, 0, set
  end
  local kept = uses and string.find(uses, 'k', 1, true) and call('ZSCORE', KEPT, id)
  if kept and kept + 0 > now then
    return 'done', call('ZSCORE', DONE, id) or 0, floor(kept)
  end
end
