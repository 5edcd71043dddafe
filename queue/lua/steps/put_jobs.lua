-- put_jobs.lua - new jobs with options come to their sets. A step.
--
-- Takes records, times, heads; first, upto: of these; homes, expiring (steps/read_options.lua); uses.
if expiring then
  local ends, within, due, by = {}, nil, nil, nil
  for k = first, upto do
    local own_within, own_due = heads[k].start_within, times[2 * k - 1]
    if own_within then
      if own_within ~= within or own_due ~= due then -- mostly they are those of the job before
        within, due, by = own_within, own_due, start_by(own_within, own_due)
      end
      if by then
        local j = #ends
        ends[j + 1], ends[j + 2] = by, times[2 * k]
        records[2 * k] = with_start_by(records[2 * k], by)
      end
    end
  end
  for i = 1, #ends, SLICE do
    call('ZADD', EXPIRES, unpack(ends, i, math.min(i + SLICE - 1, #ends)))
  end
  if #ends > 0 and not has(uses, EXPIRY) then
    note_use(EXPIRY, true)
  end
end
for i = 2 * first - 1, 2 * upto, SLICE do
  local to = math.min(i + SLICE - 1, 2 * upto)
  call('HSET', JOBS, unpack(records, i, to))
  if not homes then
    call('ZADD', SCHEDULE, unpack(times, i, to))
  end
end
if homes then
  local lists = {} -- by set
  for k = first, upto do
    local home = homes[heads[k]] or SCHEDULE
    local list = lists[home] or {}
    local j = #list
    list[j + 1], list[j + 2], lists[home] = times[2 * k - 1], times[2 * k], list
  end
  local levelled = false
  for set, list in pairs(lists) do
    for i = 1, #list, SLICE do
      call('ZADD', set, unpack(list, i, math.min(i + SLICE - 1, #list)))
    end
    levelled = levelled or set ~= SCHEDULE
  end
  if levelled and not has(uses, LEVELS) then
    note_use(LEVELS, true)
  end
end
