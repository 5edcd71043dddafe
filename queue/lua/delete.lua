-- Removes jobs that wait or are dead, or are done and kept; never those that run.
--
--  KEYS[1]   prefix      hf:{queue}:
--  ARGV[1]   not_after   ms on Redis's clock; 0: no limit. Behind it a word for this request, or none
--  ARGV[2]   died        0: waiting, dead and kept jobs, and callers that wait for one of them are told;
--            else only dead jobs that died until then, ms
--  ARGV[3..] id of each job, at most 1000, each once
--  returns   {OK, now, {code, ...}, {token, until, ...}} | {LATE, now}; a code is OK, GONE, RUNS;
--            of each that runs: its token ('': its lock has ended), and when its lease ends. Sent
--            twice: the same; without a word GONE instead of OK.
--- @step "steps/guard.lua"
local known = answered(ARGV[1])
if known then
  return known
end
local uses = call('HGET', META, 'uses')
--- @step "steps/sharded.lua"
local died, ids, codes, holders, expired = tonumber(ARGV[2]), {}, {}, {}, false
local from, kept = {}, false -- by the set in which they are
for i = 3, #ARGV do
  ids[i - 2] = ARGV[i]
  expired = expire_late(ARGV[i]) or expired
end
local deaths = call('ZMSCORE', DEAD, unpack(ids))

-- The set from which it may be removed; none, and a code: it may not.
local function place(id, death)
  if death then
    local old = died == 0 or tonumber(death) <= died
    return old and DEAD, GONE
  end
  if died > 0 then
    return nil, GONE
  end
  local runs = call('ZSCORE', RUNNING, id)
  if runs then
    holders[#holders + 1] = call('GET', LOCK .. id) or ''
    holders[#holders + 1] = floor(tonumber(runs))
    return nil, RUNS
  end
  return waits_in(id) or call('ZSCORE', PARKED, id) and PARKED, GONE
end

for k = 1, #ids do
  local set, code = place(ids[k], deaths[k])
  codes[k] = set and OK or code
  if set then
    from[set] = from[set] or {}
    table.insert(from[set], ids[k])
  end
end
open_writes()
if died == 0 and has(uses, KEEPING) then
  forget_over(FORGET_MAX)
  for k = 1, #ids do
    if codes[k] == GONE and forget_kept({ ids[k] }) == 1 then
      codes[k], kept = OK, true
    end
  end
end
local how = died == 0 and 'deleted' or 'purged'
local removed = next(from)
leave(how, from[PARKED] or {}, PARKED) -- before one of them follows its holder
from[PARKED] = nil
for set, members in pairs(from) do
  leave(how, members, set)
end
if expired or removed then
  wake(read_meta())
end
local reply = { OK, now, codes, holders }
return (removed or kept) and keep_answer(reply) or reply
