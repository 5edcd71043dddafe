-- keep.lua - keeps jobs that are done.

-- until_ms and words of each of these ids, at most 1,000.
local function keep_done(ids, until_ms, words)
  local ends, untils, lines, bytes = {}, {}, {}, 0
  forget_kept(ids)
  for k = 1, #ids do
    local i = 2 * k - 1
    ends[i], ends[i + 1] = stamp, ids[k]
    untils[i], untils[i + 1] = string.format('%d', until_ms[k]), ids[k]
    lines[i], lines[i + 1] = ids[k], words[k]
    bytes = bytes + #words[k]
  end
  call('ZADD', DONE, unpack(ends))
  call('ZADD', KEPT, unpack(untils))
  call('HSET', RESULTS, unpack(lines))
  call('HINCRBY', RESULTS, '', bytes)
  note_use('k', true)
end

-- Forgets those whose time is over, and then the oldest beyond the bounds, after so many were added.
local function trim_kept(max, max_bytes, added)
  local left = added + FORGET_MAX
  left = left - forget_over(left)
  local over = math.min(call('ZCARD', DONE) - max, left)
  if over > 0 then
    left = left - forget(call('ZRANGE', DONE, 0, over - 1))
  end
  over = tonumber(call('HGET', RESULTS, '') or 0) - max_bytes
  if over > 0 and left > 0 then
    local oldest, n = call('ZRANGE', DONE, 0, left - 1), 0
    while over > 0 and n < #oldest do
      n = n + 1
      over = over - call('HSTRLEN', RESULTS, oldest[n])
    end
    forget({ unpack(oldest, 1, n) })
  end
  local latest = call('ZRANGE', KEPT, -1, -1, 'WITHSCORES')[2]
  for _, key in ipairs(latest and { DONE, KEPT, RESULTS } or {}) do
    call('PEXPIREAT', key, string.format('%d', latest + FORGET_MS * call('ZCARD', DONE)))
  end
end
