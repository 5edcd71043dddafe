-- Pause a queue (nothing is claimed, also not from dead holders), or go on with it.
--
--  KEYS[1]  prefix      hf:{queue}:
--  ARGV[1]  not_after   ms on Redis's clock; 0: no limit. Behind it a word for this request, or none
--  ARGV[2]  paused      1 or 0
--  returns  {OK, now} | {LATE, now}. Sent twice: the same.
--- @step "steps/guard.lua"
local known = answered(ARGV[1])
if known then
  return known
end
local uses = call('HGET', META, 'uses')
--- @step "steps/sharded.lua"
open_writes()
if ARGV[2] == '1' then
  if call('HGET', META, 'paused') ~= '1' then
    call('HSET', META, 'paused', 1, 'paused_at', string.format('%d', now))
  end
else
  call('HDEL', META, 'paused', 'paused_at')
end
note_use(PAUSE, ARGV[2] == '1')
wake(read_meta())
return keep_answer({ OK, now })
