-- claim_ends.lua - what ends when jobs are claimed. A step of claim.
--
-- Takes missing: ids without a record, nil: none; starting: jobs may free their unique keys; taken, records, over,
-- n, and buried, which it may make. All of this stands in one block, because Redis keeps each copy of what it
-- includes.
--- @include "lib/unique_start.lua"
--- @include "lib/put_away.lua"
--- @include "lib/trim_dead.lua"
buried = buried or {}
for k = 1, missing and #missing or 0 do
  put_away(buried, nil, missing[k], '', 'record', 'its record was missing')
end
if starting then
  free_at_start(taken, records, over + 1, n)
end
if #buried > 0 then
  local dead_max, dead_age = string.match(ARGV[11], ' (%d+) (%d+)$')
  trim_dead(dead_max + 0, dead_age + 0, #buried / 2)
end
