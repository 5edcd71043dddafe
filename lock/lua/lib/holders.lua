-- holders.lua - the holders of a line.

-- All that hold it, and when their leases began: owner, start, ...; however many wait.
local function holders_of(l)
  return call('ZDIFF', 2, l.x, l.q, 'WITHSCORES')
end
