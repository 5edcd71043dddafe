-- lease_ends.lua - when leases end, for scripts that ask for more than one.

-- As a number and as text; see lib/lease_end.lua.
local function lease_ends(lease, at_least)
  --- @step "lib/lease_end.lua"
  return ends_at, lease_end
end
