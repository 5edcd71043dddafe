-- Give back what a claim took whose answer was lost. Sent after that claim's not_after, so that
-- it cannot be executed any more. What is to be cancelled is removed.
--
--  KEYS[1]  prefix   hf:{queue}:
--  ARGV[1]  worker   its id
--  ARGV[2]  number   of the claim
--  returns  {OK, now, jobs released}. Sent twice, the second releases none.
open_writes()
local last = call('GET', P .. 'last:' .. ARGV[1])
local words, released = {}, {}
for word in string.gmatch(last or '', '%S+') do
  words[#words + 1] = word
end
if words[1] ~= ARGV[2] then
  return { OK, now, 0 }
end
for i = 3, #words, 2 do
  local id = words[i]
  if call('GET', LOCK .. id) == ARGV[1] .. ':' .. words[2] then
    if not cancelled(id, words[2]) then
      call('ZREM', RUNNING, id)
      call('ZADD', SCHEDULE, words[i + 1], id)
      call('DEL', LOCK .. id)
    end
    released[#released + 1] = id
  end
end
if #released > 0 then
  baton(read_meta(), true)
end
return { OK, now, #released }
