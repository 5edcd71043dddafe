-- Read the holders and waiters of a lock. Writes nothing.
--
--  KEYS[1]  prefix      hf:lock:{tag}:
--  ARGV[1]  name
--  ARGV[2]  limit       entries, 1..1000
--  returns  {OK, now, cell's value or '', its end, all, {owner, end, entry, since, ...}, held, taken, limit}:
--           `all` are those in the line, `held` of them hold, and `taken` of `limit` permits are theirs; the
--           first by their place, holders before waiters. An entry is `mode state permits fence client names
--           holds lease`; its end is by Redis's clock. since: when it was granted the lock or joined the line, ms.
--- @step "steps/guard.lua"
local l, limit = line(ARGV[1]), tonumber(ARGV[2])
local cell = call('GET', l.cell)
local list = {}
-- A fence, and a place, is a time in microseconds, unless Redis's clock went back.
local function show(owner, score, place)
  local text = #list < 4 * limit and score and call('HGET', l.e, owner)
  local e = text and read_entry(text)
  if e then
    local n, since = #list, math.min(now, floor((place or e.fence) / 1000))
    list[n + 1], list[n + 2], list[n + 3], list[n + 4] = owner, start_of(e, score) + e.lease, text, since
  end
end
local holders = holders_of(l)
for i = 1, #holders, 2 do
  show(holders[i], holders[i + 1])
end
for _, owner in ipairs(call('ZRANGE', l.q, 0, limit - 1)) do
  show(owner, call('ZSCORE', l.x, owner), call('ZSCORE', l.q, owner))
end
local cell_end = cell and now + math.max(0, call('PTTL', l.cell)) or 0
return { OK, now, cell or '', cell_end, call('ZCARD', l.x), list, #holders / 2, l.permits, l.limit }
