-- clear_marks.lua - what marks a job beside its record.
--- @include "lib/key_crashes.lua"
--- @include "lib/key_cancels.lua"
--- @include "lib/each.lua"

-- What marks a job beside its record: crashes and requests to cancel.
local function clear_marks(ids)
  if call('EXISTS', CRASHES, CANCELS) > 0 then
    each('HDEL', CRASHES, ids)
    each('HDEL', CANCELS, ids)
  end
end
