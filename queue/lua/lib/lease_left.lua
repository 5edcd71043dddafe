-- lease_left.lua - how long a lease lasts.

-- In ms, 0: it has no lock. A lock ends by the queue's clock, which is ahead while Redis's was set back.
local function lease_left(id)
  local ahead = math.max(0, (call('HGET', META, 'clock') or 0) - now)
  return math.max(0, call('PTTL', LOCK .. id) - ahead)
end
