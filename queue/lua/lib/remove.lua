-- remove.lua - jobs that end without being done.
--- @include "lib/keys.lua"
--- @include "lib/each.lua"
--- @include "lib/clear_marks.lua"
--- @include "lib/count.lua"

-- Jobs that the caller has taken out of their set end without being done. `told`: the clients that wait for
-- one of them can read what became of it, for a minute; and of '', that there is such a word.
local function remove(ids, how, told)
  each('HDEL', JOBS, ids)
  clear_marks(ids)
  for i = 0, told and #ids > 0 and #ids or -1 do
    call('SET', P .. 'ended:' .. (ids[i] or ''), stamp .. ' ' .. how, 'PX', '60000')
  end
  count(how, #ids)
end
