-- Set a queue's limits. A limit that is not named stays as it is, 0 lifts it. A rate comes with its time.
--
--  KEYS[1]   prefix       hf:{queue}:
--  ARGV[1]   not_after    ms on Redis's clock; 0: no limit. Behind it a word for this request, or none
--  ARGV[2]   file         '' : an order of an operator. Else the three limits as a worker's file
--            says them, `0 0 0` for none: nothing is done if it said that before
--  ARGV[3..] name, value  for each limit: `max_running` jobs, across all workers; `rate_limit` jobs started
--            in `rate_per` ms
--  returns   {OK, now} | {LATE, now}. Sent twice: the same.
--- @step "steps/guard.lua"
local known = answered(ARGV[1])
if known then
  return known
end
local uses = call('HGET', META, 'uses')
--- @step "steps/sharded.lua"
-- A file that never named limits says the same as one that lifts them: an order stays.
if ARGV[2] ~= '' and (call('HGET', META, 'file') or '0 0 0') == ARGV[2] then
  return { OK, now }
end
-- The most that each may be, and its letter.
local most = {
  max_running = { 4294967295, MAX_RUNNING }, rate_limit = { 4294967295, RATE }, rate_per = { DELAY_MAX },
}
local values = {}
for i = 3, #ARGV, 2 do
  values[ARGV[i]] = digits(ARGV[i + 1], assert(most[ARGV[i]], 'no such limit')[1])
end
local rate, per = values.rate_limit, values.rate_per
if not rate ~= not per or rate and rate > 0 and per == 0 then
  error('holdfast: expected a rate together with its time', 0)
end
open_writes()
if ARGV[2] ~= '' then
  call('HSET', META, 'file', ARGV[2])
end
for i = 3, #ARGV, 2 do
  local name, letter = ARGV[i], most[ARGV[i]][2]
  if letter then
    note_use(letter, values[name] > 0)
  end
  if values[name] > 0 then
    call('HSET', META, name, ARGV[i + 1])
  else
    call('HDEL', META, name)
  end
end
if rate then
  call('HDEL', META, 'tokens', 'tokens_at')
end
wake(read_meta())
return keep_answer({ OK, now })
