-- Reads what workers have told about runs (runs.lua), the oldest entries first.
--
--  KEYS[1]  prefix      hf:{queue}:
--  ARGV[1]  after       the id of the last entry that was read, `<ms>-<number>`; `0-0`: none was
--  returns  {OK, now, more, {id, entry}, ...}; more: 1: there are others, which a page had no room for. Sent twice:
--           the same.
--- @step "steps/guard.lua"
local uses = call('HGET', META, 'uses')
--- @step "steps/sharded.lua"
local PAGE_BYTES, EVENTS = 262144, 20
local answer, after, bytes, slice = { OK, now, 0 }, ARGV[1], 0, nil
repeat
  if bytes >= PAGE_BYTES then
    answer[3] = 1
    break
  end
  slice = call('XRANGE', RUN_EVENTS, '(' .. after, '+', 'COUNT', EVENTS)
  for _, entry in ipairs(slice) do
    local text = entry[2][2]
    answer[#answer + 1], after, bytes = { entry[1], text }, entry[1], bytes + #text
  end
until #slice < EVENTS
return answer
