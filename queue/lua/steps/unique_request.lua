-- unique_request.lua - the jobs of a request that have unique keys. A step that gives each its key, takes those
-- out that others stand for, or that are parked, and puts the others where they belong.
--
-- Takes records, times, heads, new; entries: {key, id, ...}; held: the keys that are taken; n, codes; homes,
-- expiring, uses. Gives first, upto: no job is left to be put; soonest, codes; conflicts, if there are any. The
-- answer is kept as long as the number of the request.
local places, answers, is_answer = {}, codes or {}, false
for k = 1, n do
  if not codes or codes[k] == OK then
    places[#places + 1] = k
  end
end
local keys = {} -- by id
for i = 1, 2 * keyed, 2 do
  keys[entries[i + 1]] = entries[i]
end
local taken, left, there, windows = {}, 0, 0, 0
local function put()
  for i = 1, #taken, SLICE do
    call('HSET', UNIQUE, unpack(taken, i, math.min(i + SLICE - 1, #taken)))
  end
  if left > there then
    local first, upto = there + 1, left
    --- @step "steps/put_jobs.lua"
  end
  taken, there = {}, left
end
soonest = math.huge
for k = 1, new do
  local id, record, head, due = records[2 * k - 1], records[2 * k], heads[k], times[2 * k - 1]
  local key, text, code = keys[id], nil, nil
  if key and held[key] then -- also by a job of this request, which has to be there now
    put()
    local job = { id = id, head = head, key = key, record = record, due = due + 0, place = places[k] }
    text, code = take_key(job)
    due = string.format('%.0f', job.due)
  elseif is_taken(id) then
    code = EXISTS
  elseif key then
    held[key] = true
    local plain = not (head.debounce or head.unique_for or head.throttle)
    due = plain and due or due_of(head, due, now)
    text = text_of({ id = id, keeps = keeps_of(head), window = plain and 0 or window_of(head, now),
      first = head.debounce and now or 0 })
  end
  if code then
    answers[places[k]] = code
    is_answer = true
  else
    left = left + 1
    if left < k then
      records[2 * left - 1], records[2 * left], heads[left] = id, record, head
    end
    times[2 * left - 1], times[2 * left] = due, id
    soonest = due == stamp and math.min(soonest, now) or math.min(soonest, due + 0)
    if key then
      taken[#taken + 1], taken[#taken + 2] = key, text
      windows = windows + ((head.unique_for or head.throttle) and 1 or 0)
    end
  end
end
put()
if windows > 0 then
  end_windows(2 * windows + 100)
end
new, first, upto = left, 1, 0
if is_answer then
  codes, conflicts = answers, #conflicts_met > 0 and conflicts_met or conflicts
  for k = 1, n do
    codes[k] = codes[k] or OK
  end
  if ARGV[1] ~= '' then
    local answer = P .. 'answer:' .. ARGV[1] .. ':' .. ARGV[2]
    call('SET', answer, cjson.encode({ codes, conflicts }), 'PX', ARGV[4])
  end
end
