-- lease_end.lua - when a lease ends that starts now: at an even ms.
--
-- Takes lease and at_least, gives ends_at and the same as text, lease_end. A lease starts no sooner
-- than at the time that its holder knows of: that is ahead of this clock while others may not have
-- seen yet that it was set back. A holder that knows none (0) is new to this clock; an odd ms marks
-- that, and such a lease is over a lease later (docs/design.md, "Redis's clock"). Half a ms as the
-- mark would cost too much: in a small sorted set Redis keeps what is no integer as text. The text is
-- for `PXAT`: `PX` counts from when the command runs, and a script of large records takes its time;
-- the lock would outlive its score.
--- @include "lib/bounds.lua"
local from, length = tonumber(at_least), tonumber(lease)
if not (from and length and string.find(at_least .. lease, '^%d+$') and from <= TIME_MAX
  and length <= DELAY_MAX) then
  --- @include "lib/digits.lua"
  digits(at_least, TIME_MAX)
  digits(lease, DELAY_MAX)
end
local ends_at = (from > now and from or now) + length
ends_at = ends_at + (ends_at + (at_least == '0' and 1 or 0)) % 2
local lease_end = string.format('%d', ends_at)
