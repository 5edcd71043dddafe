-- lease_end.lua - when a lease ends that starts now.
--
-- Takes lease and clock: the queue's, nil where it has none yet. Gives ends_at, and the same as text, lease_end. A
-- lease does not start before the queue's clock, so each reading is past all leases that began before it
-- (lib/readings.lua). The text is for `PXAT`: `PX` counts from when the command runs, and a script of
-- large records takes its time; the lock would outlive its score.
local length = tonumber(lease)
if not (length and string.find(lease, '^%d+$') and length <= DELAY_MAX) then
  digits(lease, DELAY_MAX)
end
local ends_at = math.max(now, (clock or 0) + 0) + length
local lease_end = string.format('%d', ends_at)
