-- Removes jobs that wait or are dead, never those that run.
--
--  KEYS[1]   prefix      hf:{queue}:
--  ARGV[1]   not_after   ms on Redis's clock; 0: no limit
--  ARGV[2]   died        0: whatever waits or is dead, and who waits for one of them is told; else
--            only what is dead, and died until then, ms
--  ARGV[3..] id of each job, at most 1000, each once
--  returns   {OK, now, {code, ...}, {token, until, ...}} | {LATE, now}; a code is OK, GONE, RUNS;
--            of each that runs: its token, and when its lease ends. Sent twice: GONE instead of OK.
if late(ARGV[1]) then
  return { LATE, now }
end
local died, codes, holders, from, gone = tonumber(ARGV[2]), {}, {}, {}, {}
for i = 3, #ARGV do
  local id, code = ARGV[i], GONE
  local score = call('ZSCORE', DEAD, id)
  local token = not score and died == 0 and call('GET', LOCK .. id)
  if score and (died == 0 or tonumber(score) <= died) then
    code, from[#from + 1] = OK, DEAD
  elseif died == 0 and not score then
    local runs = call('ZSCORE', RUNNING, id)
    if runs and token then
      code = RUNS
      holders[#holders + 1] = token
      holders[#holders + 1] = now + math.max(0, call('PTTL', LOCK .. id))
    elseif runs or call('ZSCORE', SCHEDULE, id) then
      code, from[#from + 1] = OK, runs and RUNNING or SCHEDULE
    end
  end
  gone[#gone + 1] = code == OK and id or nil
  codes[#codes + 1] = code
end
open_writes()
for k = 1, #gone do
  call('ZREM', from[k], gone[k])
end
remove(gone, 'deleted', died == 0)
if #gone > 0 then
  baton(read_meta(), false)
end
return { OK, now, codes, holders }
