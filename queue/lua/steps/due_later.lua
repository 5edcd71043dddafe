-- due_later.lua - when new jobs are due while this clock is set back. A step.
--
-- Takes m, high; times, new: {due, id, ...}. Changes the times.
if now < high then
  call('HSET', META, 'high', m[3]) -- changes nothing, but a full Redis refuses it, and so all
  for j = 1, 2 * new, 2 do
    times[j] = times[j] ~= stamp and string.format('%d', after_delay(times[j] + 0)) or stamp
  end
end
