-- The logs of a job's runs, in the order of the runs.
--
--  KEYS[1]  prefix      hf:{queue}:
--  ARGV[1]  id
--  ARGV[2]  fence       only of this run and later ones; 0: of all
--  ARGV[3]  from        of this run only what follows this many bytes
--  returns  {OK, now, set, {fence, attempt, from, lines}, ...} | {GONE, now}
--           set: `schedule`, `running`, `dead`, `parked`, or `gone`: it was done or cancelled a moment ago. from:
--           this many bytes came before the lines; more than was asked for: what lies in between is not kept. Sent
--           twice: the same.
--- @step "steps/guard.lua"
local uses = call('HGET', META, 'uses')
--- @step "steps/sharded.lua"
local id, first, from = ARGV[1], ARGV[2] + 0, ARGV[3] + 0
local set = found_in(id)
if set == 'expired' then
  local _, dead = as_expired(id, call('HGET', JOBS, id) or '')
  set = dead and 'dead' or false -- no lines of another job that had its id
end
local fences = {}
for fence in string.gmatch(set and call('HGET', LOGS, id) or '', '%d+') do
  fences[#fences + 1] = fence
end
if set == nil then -- steps/leaving.lua leaves them for a while
  local at, slice = '0', nil
  repeat
    at, slice = unpack(call('HSCAN', LOG .. id, at, 'COUNT', '100'))
    for k = 1, #slice, 2 do
      fences[#fences + 1] = slice[k]
    end
  until at == '0'
  table.sort(fences, function(a, b)
    return a + 0 < b + 0
  end)
end
if not set and #fences == 0 then
  return { GONE, now }
end
local answer = { OK, now, set or 'gone' }
for _, fence in ipairs(fences) do
  local attempt, total, lines = string.match(call('HGET', LOG .. id, fence) or '', '^(%d+) (%d+) (.*)$')
  if attempt and fence + 0 >= first then
    local begins = total - #lines
    local skip = fence + 0 == first and math.max(0, from - begins) or 0
    if skip < #lines then
      answer[#answer + 1] = { fence, attempt, begins + skip, string.sub(lines, skip + 1) }
    end
  end
end
return answer
