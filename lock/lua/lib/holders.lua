-- holders.lua - the holders of a line.

-- All holders, and when their leases began: owner, start, ...; for any number of waiters.
local function holders_of(l)
  return call('ZDIFF', 2, l.x, l.q, 'WITHSCORES')
end
