-- crashes.lua - which jobs have run before: they were taken over, have crashes, or a checkpoint.

-- Of the first n ids, of which the first `over` were taken over, those that have run: {id, how many crashes,
-- checkpoint, ...}; 0 if none has.
local function crashes_of_all(ids, n, over)
  local found, checkpoints = {}, call('HMGET', CHECKPOINTS, unpack(ids, 1, n))
  for k, mark in ipairs(call('HMGET', CRASHES, unpack(ids, 1, n))) do
    if mark or checkpoints[k] or k <= over then
      local i = #found
      found[i + 1], found[i + 2] = ids[k], tonumber(string.match(mark or '0', '^%d+')) or 0
      found[i + 3] = string.match(checkpoints[k] or '', '^%d+ %d+ %S+ (.*)$') or ''
    end
  end
  return #found > 0 and found or 0
end
