-- A worker of the queue says which types it handles and which schedules its file names, or goodbye.
--
--  KEYS[1]  prefix  hf:{queue}:
--  ARGV[1]  worker  its id
--  ARGV[2]  alive   ms for which it counts as alive; 0: goodbye
--  ARGV[3]  said    each type, `*` for all types, and each schedule as `@id`, with a space before it, and one at
--           the end
--  returns  {OK, now, born} | {OK, now} after goodbye. born: when a worker first came to the queue, us; no queue of
--           the same name at another Redis has it. Sent twice: the same.
--- @step "steps/guard.lua"
local worker, alive = ARGV[1], digits(ARGV[2], DELAY_MAX)
open_writes()
if alive == 0 then
  call('ZREM', WORKERS, worker)
  call('HDEL', HANDLES, worker)
  call('DEL', P .. 'last:' .. worker)
  return { OK, now }
end
call('ZADD', WORKERS, now + alive, worker)
call('PEXPIRE', WORKERS, 7200000 + alive)
-- Those that went without a goodbye, and left the list of workers an hour later.
if call('HLEN', HANDLES) > 2 * call('ZCARD', WORKERS) then
  for _, id in ipairs(call('HKEYS', HANDLES)) do
    if not call('ZSCORE', WORKERS, id) then
      call('HDEL', HANDLES, id)
    end
  end
end
call('HSET', HANDLES, worker, ARGV[3])
call('PEXPIRE', HANDLES, HANDLES_MS)
local born = call('HGET', META, 'born') or time[1] .. micros
call('HSET', META, 'born', born)
return { OK, now, born }
