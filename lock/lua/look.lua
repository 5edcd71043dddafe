-- Who holds a lock, and who waits for it. Writes nothing.
--
--  KEYS[1]  prefix      hf:lock:{tag}:
--  ARGV[1]  name
--  ARGV[2]  limit       entries, 1..1000
--  returns  {OK, now, cell's value or '', its end, all, {owner, end, entry, ...}}: `all` are those in
--           the line; the first by their place, holders before waiters. An entry is `mode state
--           permits fence client names holds`. Leases that are over are left out.
local l, limit = line(ARGV[1]), tonumber(ARGV[2])
local cell = call('GET', l.cell)
local live = call('ZRANGEBYSCORE', l.x, '(' .. now, '+inf', 'WITHSCORES', 'LIMIT', 0, SWEEP)
local ends, holders, list = {}, {}, {}
for i = 1, #live, 2 do
  ends[live[i]] = live[i + 1]
  if not call('ZSCORE', l.q, live[i]) then
    holders[#holders + 1] = live[i]
  end
end
local function show(owners)
  for _, owner in ipairs(owners) do
    local text = #list < 3 * limit and ends[owner] and call('HGET', l.e, owner)
    if text then
      list[#list + 1], list[#list + 2], list[#list + 3] = owner, ends[owner], text
    end
  end
end
show(holders)
show(call('ZRANGE', l.q, 0, limit - 1))
local cell_end = cell and now + math.max(0, call('PTTL', l.cell)) or 0
return { OK, now, cell or '', cell_end, call('ZCOUNT', l.x, '(' .. now, '+inf'), list }
