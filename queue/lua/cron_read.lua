-- Read schedules.
--
--  KEYS[1]   prefix   hf:{queue}:
--  ARGV[1]   whole    1: with their payloads, 0: without
--  ARGV[2..] id       of each
--  returns   {OK, now, n, id, value, state, next, named, held, ...} of those that there are; n: this many ids were
--            looked at, fewer than all where schedules are large, but at least one. value '': without
--            its payload it is longer than 64 KiB; next '': none; named: the time at which it ends if no
--            worker's file names it, '': no file does; held 1: its ticks make no jobs, because no live
--            worker's file names it. Sent twice: the same.
--- @step "steps/guard.lua"
local uses = call('HGET', META, 'uses')
--- @step "steps/sharded.lua"
local PAGE_BYTES, MAX_LINE = 1024 * 1024, 65536
local answer, bytes, whole = { OK, now, 0 }, 0, ARGV[1] == '1'
for i = 2, #ARGV do
  if bytes > PAGE_BYTES then
    break
  end
  local id = ARGV[i]
  local value, state = call('HGET', CRON, id), call('HGET', CRON_STATE, id) or '{}'
  answer[3] = i - 1
  if value then
    local line, n = string.match(value, '^[^\n]*\n?'), #answer
    bytes = bytes + #value + #state
    answer[n + 1] = id
    answer[n + 2] = whole and value or #line > MAX_LINE and '' or line
    answer[n + 3] = #state > MAX_LINE and '{}' or state
    answer[n + 4] = call('ZSCORE', CRON_NEXT, id) or ''
    answer[n + 5] = call('ZSCORE', CRON_NAMED, id) or ''
    answer[n + 6] = answer[n + 4] ~= '' and is_held(id) and 1 or 0
  end
end
return answer
