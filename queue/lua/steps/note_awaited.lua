-- note_awaited.lua - clients will wait for the ends of jobs of a request. A step.
--
-- Takes args, n, codes, conflicts. Gives awaited: place, accepted of the job that is there for each of them. The
-- answer is kept as long as the number of the request.
local others = {} -- by place: the job that stands for it, and its state
for i = 1, conflicts and #conflicts or 0, 4 do
  if conflicts[i + 1] ~= 'parked' then
    others[conflicts[i]] = { conflicts[i + 2], conflicts[i + 3] }
  end
end
for k = 1, n do
  if string.find(args[5 + 3 * k], '^[^\n]*"awaited":%s*1') then
    local other = others[k] or { args[3 + 3 * k], codes and codes[k] }
    local gone = other[2] == IS_DEAD or other[2] == GONE
    awaited = awaited or {}
    awaited[#awaited + 1] = k
    awaited[#awaited + 1] = gone and 0 or note_wait(other[1], '*', nil, true) + 0
  end
end
if awaited and ARGV[1] ~= '' then
  local answer = P .. 'answer:' .. ARGV[1] .. ':' .. ARGV[2]
  call('SET', answer, cjson.encode({ codes or {}, conflicts or {}, awaited }), 'PX', ARGV[4])
end
