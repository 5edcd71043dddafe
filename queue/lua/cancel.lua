-- A job is not wanted any more: one that waits is removed, of one that runs the holder is asked to
-- end it.
-- Stable since 0.2: clients of all languages call it (docs/keys.md).
--
--  KEYS[1]  prefix      hf:{queue}:
--  ARGV[1]  not_after   ms on Redis's clock; 0: no limit. Behind it a word for this request, or none
--  ARGV[2]  id
--  returns  {OK, now} (removed) | {RUNS, now, token, until, accepted} (its holder hears of it with its next
--           renewal; the end of its lease; token '': its lock has ended, and it is removed when it
--           is taken over, unless its holder renews it; accepted: for `await`) | {IS_DEAD, now} | {GONE, now} | {LATE, now}
--           Sent twice: the same; without a word GONE if it was removed.
--- @step "steps/guard.lua"
local known = answered(ARGV[1])
if known then
  return known
end
local uses = call('HGET', META, 'uses')
--- @step "steps/sharded.lua"
local id = ARGV[2]
open_writes()
if expire_late(id) then -- another job may wait now
  wake(read_meta())
end
if call('ZSCORE', DEAD, id) then
  return { IS_DEAD, now }
end
local token, ends = ask_to_cancel(id)
if token then
  return keep_answer({ RUNS, now, token, ends, note_wait(id, '*') + 0 })
end
local set = waits_in(id) or call('ZSCORE', PARKED, id) and PARKED
if not set then
  return { GONE, now }
end
leave('cancelled', { id }, set)
wake(read_meta())
return keep_answer({ OK, now })
