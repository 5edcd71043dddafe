-- A slice of a queue's jobs is removed, also of those that are done and kept; never those that run.
--
--  KEYS[1]  prefix      hf:{queue}:
--  ARGV[1]  not_after   ms on Redis's clock; 0: no limit
--  ARGV[2]  state       delayed (as of now), ready, dead, parked or done
--  ARGV[3]  before      ready: those that were due until then, dead and done: that ended until then, ms
--  ARGV[4]  max         jobs, 1..1000
--  ARGV[5]  slice       a word for this slice, different from all others
--  returns  {OK, now, removed, cut} | {LATE, now}; cut 1 (or left out): it may be fewer than there were, because their
--           records are large. Sent twice, the second answers the number of the first, if no other
--           slice came in between.
--- @step "steps/guard.lua"
if came_late(ARGV[1]) then
  return { LATE, now }
end
local uses = call('HGET', META, 'uses')
--- @step "steps/sharded.lua"
local large = has(uses, UNIQUE_KEYS) and has(uses, LARGE)
local last, removed = string.match(call('GET', P .. 'purged') or '', '^%d+ (%S+) (%d+)$')
if last and last == ARGV[5] then
  return { OK, now, tonumber(removed), large and 1 or nil }
end
if ARGV[2] == 'done' then
  open_writes()
  forget_over(FORGET_MAX)
elseif ARGV[2] ~= 'dead' and has(uses, EXPIRY) then
  for _ = 1, 2 do -- these are not purged, but have expired; then those that followed them
    expire_due({})
  end
end
local ONE = { dead = DEAD, done = DONE, parked = PARKED }
local room = 8388608 -- bytes of records that tell their unique keys
local sets, n = ONE[ARGV[2]] and { ONE[ARGV[2]] } or levels(), 0
for _, set in ipairs(sets) do
  local first, left = 0, tonumber(ARGV[4]) - n
  if ARGV[2] == 'parked' then
    left = math.min(left, call('ZCARD', set))
  elseif ARGV[2] == 'delayed' then
    first = call('ZCOUNT', set, '-inf', now)
  else
    left = math.min(left, call('ZCOUNT', set, '-inf', ARGV[3]))
  end
  local ids = left > 0 and call('ZRANGE', set, first, first + left - 1) or {}
  if set ~= DONE and large then
    local fit = that_fit(ids, #ids, room, n == 0) -- their records are read, for their unique keys
    ids, room = { unpack(ids, 1, fit) }, fit < #ids and 0 or room
  end
  if #ids > 0 then
    open_writes()
    if set == DONE then
      forget(ids)
    else
      leave('purged', ids, set)
    end
    n = n + #ids
  end
end
if n > 0 then
  -- Instead of a mark for each job: a caller that waits for one sees that a purge removed it.
  call('SET', P .. 'purged', now .. ' ' .. ARGV[5] .. ' ' .. n, 'PX', 60000)
  wake(read_meta())
end
return { OK, now, n, room == 0 and 1 or nil }
