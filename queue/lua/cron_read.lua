-- Read one schedule, or a page of all.
--
--  KEYS[1]  prefix   hf:{queue}:
--  ARGV[1]  id       '': all
--  ARGV[2]  cursor   of all: '0' at the start
--  returns  {OK, now, cursor, id, value, state, next, named, ...}; cursor to ask for next, '0' at the end;
--           value with its payload for one, without it for all; next '': none; named: the time at which
--           it ends if no worker's file names it, '': no file does. Sent twice: the same.
--- @include "lib/guard.lua"
--- @include "lib/keys.lua"
--- @include "lib/key_cron.lua"
local uses = call('HGET', META, 'uses')
--- @step "lib/sharded.lua"
local cursor, found = '0', nil
if ARGV[1] == '' then
  local page = call('HSCAN', CRON, ARGV[2], 'COUNT', 100)
  cursor, found = page[1], page[2]
else
  local value = call('HGET', CRON, ARGV[1])
  found = value and { ARGV[1], value } or {}
end
local answer = { OK, now, cursor }
for i = 1, #found, 2 do
  local id, n = found[i], #answer
  answer[n + 1] = id
  answer[n + 2] = ARGV[1] == '' and string.match(found[i + 1], '^[^\n]*\n?') or found[i + 1]
  answer[n + 3] = call('HGET', CRON_STATE, id) or '{}'
  answer[n + 4] = call('ZSCORE', CRON_NEXT, id) or ''
  answer[n + 5] = call('ZSCORE', CRON_NAMED, id) or ''
end
return answer
