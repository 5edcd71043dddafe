-- Read a page of the dead jobs, the longest dead first. Works while jobs are removed between the
-- pages.
--
--  KEYS[1]  prefix      hf:{queue}:
--  ARGV[1]  from        only those that died then or later, ms
--  ARGV[2]  after       '' or an id that died at `from`: the page begins after it; if it is not
--           there any more, with the first that died then
--  ARGV[3]  before      only those that died until then, ms
--  ARGV[4]  max         jobs, 1..1000; fewer where records are large
--  ARGV[5]  lines       1: with the first line of each record; 0: '' instead
--  returns  {OK, now, more, {id, died, line}, ...}; more 0: there is nothing behind this page.
--           Sent twice: the same.
--- @step "steps/guard.lua"
local uses = call('HGET', META, 'uses')
--- @step "steps/sharded.lua"
local PAGE_BYTES = 1024 * 1024
local first = call('ZCOUNT', DEAD, '-inf', '(' .. ARGV[1])
if tonumber(call('ZSCORE', DEAD, ARGV[2]) or -1) == tonumber(ARGV[1]) then
  first = call('ZRANK', DEAD, ARGV[2]) + 1
end
local max, bytes = tonumber(ARGV[4]), 0
local found = call('ZRANGE', DEAD, first, first + max - 1, 'WITHSCORES')
local answer = { OK, now, #found == 2 * max and 1 or 0 }
for i = 1, #found, 2 do
  if tonumber(found[i + 1]) > tonumber(ARGV[3]) then
    answer[3] = 0
    break
  end
  if bytes > PAGE_BYTES then
    answer[3] = 1
    break
  end
  local line = ''
  if ARGV[5] == '1' then
    local record = call('HGET', JOBS, found[i]) or ''
    bytes = bytes + #record
    line = string.sub(record, 1, string.find(record, '\n', 1, true) or 0)
  end
  answer[#answer + 1] = { found[i], tonumber(found[i + 1]), line }
end
return answer
