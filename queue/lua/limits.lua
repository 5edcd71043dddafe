-- Set a queue's limits. '' leaves a limit as it is, 0 lifts it. Each number of jobs is below 2^32, and
-- a rate comes with its time.
--
--  KEYS[1]  prefix       hf:{queue}:
--  ARGV[1]  not_after    ms on Redis's clock; 0: no limit. Behind it a word for this request, or none
--  ARGV[2]  max_running  jobs, across all workers
--  ARGV[3]  rate_limit   jobs started
--  ARGV[4]  rate_per     in this many ms
--  ARGV[5]  file         '' : an order of an operator. Else the three limits as a worker's file
--           says them, `0 0 0` for none: nothing is done if it said that before
--  returns  {OK, now} | {LATE, now}. Sent twice: the same.
--- @step "steps/guard.lua"
local known = answered(ARGV[1])
if known then
  return known
end
local uses = call('HGET', META, 'uses')
--- @step "steps/sharded.lua"
-- A file that never named limits says the same as one that lifts them: an order stays.
if ARGV[5] ~= '' and (call('HGET', META, 'file') or '0 0 0') == ARGV[5] then
  return { OK, now }
end
for _, value in ipairs({ ARGV[2], ARGV[3] }) do
  assert(value == '' or digits(value, 4294967295))
end
assert(ARGV[4] == '' or digits(ARGV[4], DELAY_MAX))
local rate, per = tonumber(ARGV[3]), tonumber(ARGV[4]) -- nil: ''
if not rate ~= not per or rate and rate > 0 and per == 0 then
  error('holdfast: expected a rate together with its time', 0)
end
open_writes()
if ARGV[5] ~= '' then
  call('HSET', META, 'file', ARGV[5])
end
local function set(field, value, feature)
  if feature and value ~= '' then
    note_use(feature, value ~= '0')
  end
  if value == '0' then
    call('HDEL', META, field)
  elseif value ~= '' then
    call('HSET', META, field, value)
  end
end
set('max_running', ARGV[2], MAX_RUNNING)
set('rate_limit', ARGV[3], RATE)
set('rate_per', ARGV[4])
if ARGV[3] ~= '' then
  call('HDEL', META, 'tokens', 'tokens_at')
end
wake(read_meta())
return keep_answer({ OK, now })
