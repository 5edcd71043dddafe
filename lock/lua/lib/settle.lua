-- settle.lua - removes ended leases from a line, and grants from its head.

local SWEEP = 1000 -- entries that one script looks at, at most

-- What the caller has proved to be over leaves: entries, and holds of clients that share one.
local function sweep(l)
  local before
  for _, r in ipairs(l.readings or {}) do
    before = age_at(l.boot, r) >= l.shortest and string.format('(%.0f', r.clock) or before
  end
  for _, owner in ipairs(before and call('ZRANGEBYSCORE', l.x, '-inf', before, 'LIMIT', 0, SWEEP) or {}) do
    local e, live = entry_of(l, owner), {}
    local score = call('ZSCORE', l.x, owner)
    for _, hold in ipairs(e and e.holds or {}) do
      if age_of(l, hold[4] or tonumber(score)) < (hold[5] or e.lease) then
        live[#live + 1] = hold
      end
    end
    if #live == 0 then
      take_out(l, owner, e)
    elseif #live < #e.holds then
      e.holds = live
      change_holds(l, owner, e)
    end
  end
end

local function grant(l, owner, e, fence)
  e.granted, e.fence = true, fence
  call('ZREM', l.q, owner)
  counts(l, e, 1)
  put_entry(l, owner, e)
end

-- A hint; if it cannot be left there, the next renewal shows the grant. It names the holds, because
-- a later hold of the same owner must not be mistaken for an earlier one. Waiters and holders have
-- separate inboxes. Each client of the owner gets a message about its own holds.
local function tell(e, what, fence)
  local clients, messages = {}, {}
  for _, hold in ipairs(e.holds) do
    local client = hold[3]
    if not messages[client] then
      clients[#clients + 1], messages[client] = client, what .. ' ' .. fence
    end
    messages[client] = messages[client] .. ' ' .. hold[1]
  end
  for _, client in ipairs(clients) do
    local inbox = P .. 'in:' .. client .. (what == 'granted' and '' or '/held')
    redis.pcall('RPUSH', inbox, messages[client])
    redis.pcall('PEXPIRE', inbox, INBOX_MS)
  end
end

-- The entries of a waiter by line, if it is the head of all lines that it waits in, and fits into each.
local function entries_to_grant(owner, e)
  local entries = {}
  for _, n in ipairs(e.names) do
    local l = line(n)
    local mine = call('ZRANGE', l.q, 0, 0)[1] == owner and entry_of(l, owner)
    if not mine or not fits(l, mine) then
      return nil
    end
    entries[n] = mine
  end
  return entries
end

-- Grants from the head, strictly in order: no waiter starves.
local function promote(l)
  for _ = 1, SWEEP do
    local owner = l.waits and call('ZRANGE', l.q, 0, 0)[1]
    if not owner then
      return
    end
    local start = call('ZSCORE', l.x, owner)
    local e = start and entry_of(l, owner)
    if not e then
      take_out(l, owner, nil)
    elseif start_of(e, start) + e.lease <= l.now then
      return -- it may be dead; its next renewal comes by if it is not
    else
      for _, n in ipairs(e.names) do
        sweep(line(n))
      end
      local entries = entries_to_grant(owner, e)
      if not entries then
        return
      end
      local fence = next_fence()
      for _, n in ipairs(e.names) do
        grant(line(n), owner, entries[n], fence)
        for _, hold in ipairs(entries[n].holds) do -- a hold may wait in some of the lines only
          if not find_hold(e, hold[1]) then
            e.holds[#e.holds + 1] = hold
          end
        end
      end
      tell(e, 'granted', fence)
      for _, n in ipairs(e.names) do
        if n ~= l.name then
          promote(line(n))
        end
      end
    end
  end
end

local function settle(l)
  sweep(l)
  promote(l)
end

-- At the end of what changes a line. Its keys end long after the last change, for that is by Redis's
-- clock.
local function keep(l)
  if call('EXISTS', l.x) == 0 or l.X + l.S + l.permits == 0 and call('EXISTS', l.q) == 0 then
    call('DEL', l.x, l.q, l.e) -- without holders and waiters; owners without an entry are neither
    return
  end
  if l.noted then
    keep_readings(l)
  end
  for _, key in ipairs({ l.x, l.q, l.e }) do
    call('PEXPIRE', key, LINE_MS)
  end
end

local function keep_changed()
  for _, l in pairs(lines) do
    if l.changed then
      keep(l)
    end
  end
end

-- How long a message stays.
local INBOX_MS = 60000

-- A full Redis accepts this, and then all other writes of the script.
local function open_writes()
  call('DEL', P .. 'full')
end
