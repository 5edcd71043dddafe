-- known.lua - which ids are known; mostly none is, and then there are no codes. A step.
--
-- Takes args, n, uses. Gives codes: of those that are known, by their places.
local codes
local sets, beside, others = call('EXISTS', SCHEDULE, RUNNING, DEAD), uses and string.find(uses, '[lu]'), nil
if beside then
  local high, low, parked = SCHEDULE .. ':h', SCHEDULE .. ':l', P .. 'parked'
  others = not string.find(uses, 'l', 1, true) and { parked }
    or string.find(uses, 'u', 1, true) and { high, low, parked } or { high, low }
end
if sets > 0 or beside then
  local ids, set, code = {}, SCHEDULE, EXISTS
  for k = 1, n do
    ids[k] = args[3 + 3 * k]
  end
  for place = 1, others and 3 + #others or 3 do
    if n == 1 then -- a command whose answer is no table
      codes = call('ZSCORE', set, ids[1]) and { code } or codes
    elseif n < 8 or sets == 3 or call('EXISTS', set) == 1 then
      for from = 1, n, SLICE do
        local to = from + SLICE - 1
        local scores = call('ZMSCORE', set, unpack(ids, from, to < n and to or n))
        for k = 1, #scores do
          if scores[k] then
            codes = codes or {}
            codes[from + k - 1] = code
          end
        end
      end
    end
    if place == 1 then
      set, code = RUNNING, RUNS
    elseif place == 2 then
      set, code = DEAD, IS_DEAD
    elseif others then
      set, code = others[place - 2], EXISTS
    end
  end
end
-- A job that waits and whose time is over is gone, or will be dead.
if codes and uses and string.find(uses, 'x', 1, true) then
  --- @include "lib/open_writes.lua"
  --- @include "lib/is_late.lua"
  --- @include "lib/expire.lua"
  local waits = {} -- also for its later mentions, though a job that was parked may be late by then
  for k = 1, n do -- in this order: of an id that is named twice the first counts
    local id = args[3 + 3 * k]
    if codes[k] == EXISTS and not waits[id] and not is_late(id) then
      waits[id] = true
    elseif codes[k] == EXISTS and not waits[id] then
      open_writes()
      local dying = expire({ id }, { call('ZSCORE', EXPIRES, id) })
      codes[k] = #dying > 0 and IS_DEAD or nil
      words[2] = true -- how it ended is told now
    end
  end
end
