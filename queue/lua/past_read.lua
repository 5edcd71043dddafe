-- Reads some steps of a queue's history (past.lua).
--
--  KEYS[1]  prefix      hf:{queue}:
--  ARGV[1]  step        its length: 1 or 10 minutes
--  ARGV[2]  first       the number of the first step (lib/keys.lua)
--  ARGV[3]  n           how many steps, 1 to 60; fewer where they are large, but at least one
--  ARGV[4]  type        only this type and how the queue was; '': all types
--  ARGV[5]  present     1: how the queue is now is answered as well
--  returns  {OK, now, how the queue is now or '', {field, text, ...}, ...}: of each step the fields of its hash: a type,
--           `*`, '' for how the queue was, `!crashed` or `!lost`; {}: nothing happened, or it is not kept. Sent
--           twice: the same.
--- @step "steps/guard.lua"
local uses = call('HGET', META, 'uses')
--- @step "steps/sharded.lua"
local PAGE_BYTES, bytes = 262144, 0
local prefix = PAST .. (ARGV[1] == '10' and 't' or '')
local first, n, type = digits(ARGV[2], TIME_MAX), digits(ARGV[3], 60), ARGV[4]
local wanted = { '', CRASHED_FIELD, LOST_FIELD, type }
local answer = { OK, now, ARGV[5] == '1' and sample() or '' }
for step = first, first + n - 1 do
  local key = prefix .. string.format('%.0f', step)
  local fields
  if type == '' then
    fields = call('HGETALL', key)
  else
    local texts = call('HMGET', key, unpack(wanted))
    fields = {}
    for i, name in ipairs(wanted) do
      if texts[i] then
        fields[#fields + 1], fields[#fields + 2] = name, texts[i]
      end
    end
  end
  answer[#answer + 1] = fields
  for i = 2, #fields, 2 do
    bytes = bytes + #fields[i]
  end
  if bytes > PAGE_BYTES then
    break
  end
end
return answer
