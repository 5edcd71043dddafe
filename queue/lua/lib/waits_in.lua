-- waits_in.lua - whether a job waits.

-- The set in which this id waits, and its score there; nil: it does not wait.
local function waits_in(id)
  for _, set in ipairs(levels()) do
    local score = call('ZSCORE', set, id)
    if score then
      return set, score
    end
  end
end
