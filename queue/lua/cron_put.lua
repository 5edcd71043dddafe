-- Write a schedule, new or changed.
--
--  KEYS[1]  prefix      hf:{queue}:
--  ARGV[1]  not_after   ms on Redis's clock; 0: no limit. Behind it a word for this request, or none
--  ARGV[2]  id          a name
--  ARGV[3]  next        its first tick after now, ms; '': none
--  ARGV[4]  value       `{"cron":...,"job":{"type":"T","priority":"high"}}\npayload`, see docs/keys.md; the
--           options of its jobs are those of enqueue_with, but for unique keys
--  ARGV[5]  file        '': an order of an operator. Else what a worker's file says: `start` when the
--           worker starts or reloads it, `keep` later
--  ARGV[6]  rev         of the file; one below the highest so far changes nothing
--  returns  {OK, now, written} | {LATE, now}; written 0: nothing was changed, because it is
--           so already, or the file said that before. A schedule of a file ends 10 minutes after the last such request.
--           Sent twice: the same.
--- @step "steps/guard.lua"
local known = answered(ARGV[1])
if known then
  return known
end
local uses = call('HGET', META, 'uses')
--- @step "steps/sharded.lua"
local id, value, file, rev = ARGV[2], ARGV[4], ARGV[5], digits(ARGV[6], 2 ^ 53)
local head = cjson.decode(string.match(value, '^({[^\n]*})\n'))
assert(#id <= 128 and string.find(id, '^[%w%._:%-]+$') and head.job.type, 'holdfast: a schedule')
assert(ARGV[3] == '' or digits(ARGV[3], TIME_MAX))
local option, expected = wrong_option(head.job, true)
if head.job.unique ~= nil or option == 'unique' then
  expected = 'no unique keys of its jobs: `overlap` keeps them apart'
end
if expected then
  error('holdfast: schedule: expected ' .. expected, 0)
end

-- Nothing else of it changes. If it was held, a worker judges now the ticks that it has missed.
local function release(state, changed)
  if state.held then
    state.held, changed = nil, true
    call('ZADD', CRON_NEXT, 'XX', stamp, id)
    wake(read_meta())
  end
  if changed then
    call('HSET', CRON_STATE, id, cjson.encode(state))
  end
end

local text = call('HGET', CRON_STATE, id)
local old, digest = text and cjson.decode(text) or nil, redis.sha1hex(value)
if old and file ~= '' then
  local same, newer = old.file == digest, rev - (old.rev or 0)
  -- A newer file that says the same takes back what a command has changed or removed.
  if file == 'keep' or newer < 0 or same and (newer == 0 or call('HGET', CRON, id) == value) then
    open_writes()
    call('ZADD', CRON_NAMED, 'XX', string.format('%d', now + 600000), id)
    local follows = same and newer > 0 -- an older file must not come after it
    if follows then
      old.rev = rev
    end
    release(old, follows)
    return { OK, now, 0 }
  end
end
if old and file == '' and call('HGET', CRON, id) == value then
  open_writes()
  call('ZREM', CRON_NAMED, id)
  release(old, false)
  return { OK, now, 0 }
end
local state = old or {}
state.gen, state.from, state.removed, state.held = time[1] .. micros, decided_until(state.from), nil, nil
if file ~= '' then
  state.file, state.rev = digest, rev
end
call('HSET', CRON, id, value) -- first of all: a full Redis refuses it
call('HSET', CRON_STATE, id, cjson.encode(state))
if ARGV[3] == '' or state.paused then
  call('ZREM', CRON_NEXT, id)
else
  call('ZADD', CRON_NEXT, ARGV[3], id)
end
if file == '' then
  call('ZREM', CRON_NAMED, id)
else
  call('ZADD', CRON_NAMED, string.format('%d', now + 600000), id)
end
note_use(SCHEDULES, true)
note_decided()
wake(read_meta())
return keep_answer({ OK, now, 1 })
