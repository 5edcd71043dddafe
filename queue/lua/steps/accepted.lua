-- accepted.lua - the end of a request whose new jobs are in their sets. A step that answers.
--
-- Takes records, new: {id, record, ...}; big: one of them is large; soonest: when the first is due; what
-- steps/seen.lua gave; high, next_wake, uses; conflicts: with other jobs, which may have changed then; awaited; died.
if words[2] then -- how an earlier job of this id ended is no word on the new one
  for j = 1, 2 * new, 2 do
    call('DEL', P .. 'ended:' .. records[j])
  end
end
--- @step "steps/forget_done.lua"
if died and ARGV[1] ~= '' and not awaited then -- sent again, it is told again
  local answer = P .. 'answer:' .. ARGV[1] .. ':' .. ARGV[2]
  call('SET', answer, cjson.encode({ codes, conflicts or {} }), 'PX', ARGV[4])
end
if ARGV[1] ~= '' then
  call('SET', SEEN, highest .. ':' .. bits, 'PX', ARGV[4])
end
if new > 0 then
  call('HINCRBY', META, 'enqueued', new == 1 and '1' or new)
  if big then
    note_use(LARGE, true)
  end
end
if new == 0 and not conflicts then
  return { OK, now, 0, codes, awaited and {}, awaited }
elseif now > high + HIGH_MS and new > 0 then
  call('HSET', META, 'high', stamp)
end

-- The wake rule. Where a limit counts, or a time has come that others may have used, it has to look;
-- else the next claim is for the first of these jobs, unless a worker comes sooner anyway.
if conflicts or has_any(uses, DELAYS) or soonest > now and next_wake and next_wake <= now then
  wake(read_meta())
else
  local at, doubted = soonest, false
  --- @step "steps/wake_rule.lua"
end
return { OK, now, 0, codes or {}, conflicts or awaited and {}, awaited }
