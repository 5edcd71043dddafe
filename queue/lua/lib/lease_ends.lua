-- lease_ends.lua - when a lease ends.
--- @include "lib/bounds.lua"

-- When a lease ends that starts now, as a number and as text: at an even ms. It starts no sooner
-- than at the time that its holder knows of: that is ahead of this clock while others may not have
-- seen yet that it was set back. A holder that knows none (0) is new to this clock; an odd ms marks
-- that, and such a lease is over a lease later (docs/design.md, "Redis's clock"). Half a ms as the
-- mark would cost too much: in a small sorted set Redis keeps what is no integer as text.
local function lease_ends(lease, at_least)
  local from, length = tonumber(at_least), tonumber(lease)
  if not (string.find(at_least .. lease, '^%d+$') and from and length and from <= TIME_MAX
    and length <= DELAY_MAX) then
    --- @include "lib/digits.lua"
    digits(at_least, TIME_MAX)
    digits(lease, DELAY_MAX)
  end
  local ends_at = (from > now and from or now) + length
  ends_at = ends_at + (ends_at + (at_least == '0' and 1 or 0)) % 2
  return ends_at, string.format('%d', ends_at)
end
