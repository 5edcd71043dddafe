-- Change a job that waits: its payload, the time at which it is due, its priority.
--
--  KEYS[1]  prefix      hf:{queue}:
--  ARGV[1]  not_after   ms on Redis's clock; 0: no limit. Behind it a word for this request, or none
--  ARGV[2]  id
--  ARGV[3]  due         '': as it is; 0 (now), a time in ms, or the negative of a delay in ms
--  ARGV[4]  priority    '': as it is; else high, normal or low
--  ARGV[5]  replace     1: the payload, by the next argument; 0: it stays
--  ARGV[6]  payload
--  returns  {OK, now} | {RUNS, now} | {IS_DEAD, now} | {WAITS_FOR, now} (it is parked) | {GONE, now}
--           | {LATE, now}
--           Sent twice: the same, and a delay begins with the second.
--- @step "steps/guard.lua"
local BIG_BYTES = 8192 -- a claim need not weigh records up to this size
local known = answered(ARGV[1])
if known then
  return known
end
local uses = call('HGET', META, 'uses')
--- @step "steps/sharded.lua"
local id, due, priority = ARGV[2], ARGV[3], ARGV[4]
local at = string.find(due, '^%-?%d+$') and due + 0
if due ~= '' and not (at and at >= -DELAY_MAX and at <= TIME_MAX) then
  error('holdfast: expected to be due at 0, a time, or minus a delay', 0)
elseif priority ~= '' and priority ~= 'normal' and not OF_PRIORITY[priority] then
  error('holdfast: expected as the priority high, normal or low', 0)
end
open_writes()
if expire_late(id) then -- another job may wait now
  wake(read_meta())
end
local set, score = waits_in(id)
local record = set and call('HGET', JOBS, id)
if not record then
  local code = call('ZSCORE', RUNNING, id) and RUNS or call('ZSCORE', DEAD, id) and IS_DEAD
  return { code or call('ZSCORE', PARKED, id) and WAITS_FOR or GONE, now }
end
if due ~= '' then
  at = at <= 0 and after_delay(now - at) or at
  score = string.format('%d', at)
end
if ARGV[5] == '1' then
  record = string.sub(record, 1, string.find(record, '\n', 1, true) or 0) .. ARGV[6]
end
local home, by, head = set, nil, head_of(record) or {}
local level = OF_PRIORITY[priority] and priority or nil
if priority ~= '' then
  home = level_of(level)
end
if due ~= '' and head.start_by then -- its time begins with its due time
  by = start_by(head.start_within, at)
end
if by or priority ~= '' and head.priority ~= level then -- else the line stays, byte for byte
  record = rewrite(record, function(line)
    if priority ~= '' then
      line.priority = level
    end
    line.start_by = by and tonumber(by) or line.start_by
  end)
end
call('HSET', JOBS, id, record)
if home ~= set then
  call('ZREM', set, id)
  note_use(LEVELS, true)
end
call('ZADD', home, score, id)
if by then
  call('ZADD', EXPIRES, by, id)
end
if #record > BIG_BYTES then
  note_use(LARGE, true)
end
wake(read_meta())
return keep_answer({ OK, now })
