-- leaving.lua - the one door out: each job that ends goes through this step. Everything that is kept
-- beside a job is removed here when it ends. `how` it ends:
--   done       counted
--   dead       stays as a dead letter: its record is kept (lib/dying.lua), its checkpoint and its logs.
--              Not counted: it may be put back, and end again
--   cancelled  counted; `ended:<id>` tells it for a minute, and `ended:` says that there is such a word
--   deleted    as cancelled, under its own name
--   expired    as cancelled, under its own name
--   purged     counted as deleted; no word for each
--   trimmed    from the dead, by their bounds, or by a repair because it has no record; not counted
--   replaced   counted: the job that followed it took its place (lib/conflicts.lua). `ended:<id>` says
--              replaced; a client that waits is told cancelled
-- A new `how` also concerns TOLD_AS (lib/marks.lua), VOIDS (lib/unique.lua), and end_of() of admin/jobs.c.
-- A client that waits for the job is told each of these ends (lib/marks.lua).
-- Takes how; ids, at most 2,000, from the place `from` on; set: where they are, nil: the caller has
-- taken them out; locks: the keys of their locks, nil: no worker holds them; marked: one of them may
-- have a mark; expiring: one of them may have a time at which it expires; leaving: what all of
-- them need ('': nothing), or true: their records tell it; nil: none needs anything. Workers pass it on unread
-- (hf_record_leaving() of queue/record.c); today it is the unique key. Gives unparked: a job took the key of one
-- that ended. Out of a set first, the record last.
if set then
  call('ZREM', set, unpack(ids, from))
end
if leaving then
  unparked = free_keys(how, ids, from, leaving)
end
if how ~= 'dead' then
  call('HDEL', JOBS, unpack(ids, from))
end
if locks then
  call('DEL', unpack(locks))
end
if marked then
  for k, note in ipairs(call('HMGET', WAITS, unpack(ids, from))) do
    if note then
      tell_end(ids[from + k - 1], note, how)
    end
  end
  call('HDEL', CRASHES, unpack(ids, from))
  call('HDEL', CANCELS, unpack(ids, from))
  call('HDEL', WAITS, unpack(ids, from))
  call('HDEL', PROGRESS, unpack(ids, from))
  local gone = how ~= 'dead'
  if gone then
    call('HDEL', CHECKPOINTS, unpack(ids, from))
    if call('HDEL', LOGS, unpack(ids, from)) > 0 then
      for k = from, #ids do
        if how == 'done' or how == 'cancelled' then -- those that follow it read its last lines (logs.lua)
          call('PEXPIRE', LOG .. ids[k], '5000')
        else
          call('DEL', LOG .. ids[k])
        end
      end
    end
  end
  note_use(MARKS, has_marks(P))
end
if expiring then
  call('ZREM', EXPIRES, unpack(ids, from))
end
if how == 'cancelled' or how == 'deleted' or how == 'expired' or how == 'replaced' then
  -- It lasts as long as any of them, also after this clock was set back.
  local last = string.format('%d', math.max(60000, call('PTTL', P .. 'ended:')))
  call('SET', P .. 'ended:', stamp .. ' ' .. how, 'PX', last)
  for k = from, #ids do
    call('SET', P .. 'ended:' .. ids[k], stamp .. ' ' .. how, 'PX', '60000')
  end
end
if how ~= 'dead' and how ~= 'trimmed' then
  local n = #ids - from + 1
  call('HINCRBY', META, how == 'purged' and 'deleted' or how, n == 1 and '1' or n)
end
