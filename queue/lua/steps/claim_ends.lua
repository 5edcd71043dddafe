-- claim_ends.lua - what ends when jobs are claimed. A step of claim.
--
-- Takes missing: ids without a record, nil: none; starting: jobs may free their unique keys; taken, records, over,
-- n, m, and buried, which it may make. If other jobs may wait now, also at a level that had none, it gives more,
-- nil, and wait, 0: this worker comes back at once. All of this stands in one block, because Redis keeps each copy
-- of what it includes.
buried = buried or {}
for k = 1, missing and #missing or 0 do
  put_away(buried, nil, missing[k], '', 'record', 'its record was missing')
end
local unparked = starting and free_at_start(taken, records, over + 1, n)
if #buried > 0 then
  local dead_max, dead_age = string.match(ARGV[9], ' (%d+) (%d+)$')
  trim_dead(dead_max + 0, dead_age + 0, #buried / 2)
end
if unparked or #buried > 0 then
  more, wait = nil, 0
  if m then
    m.uses = call('HGET', META, 'uses') or ''
  end
end
