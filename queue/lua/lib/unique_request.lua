-- unique_request.lua - the jobs of a request that have unique keys.
--- @include "lib/slice.lua"
--- @include "lib/unique_take.lua"

-- Which of these keys are taken.
local function held_keys(heads, n)
  local keys, held = {}, {}
  for k = 1, n do
    keys[#keys + 1] = heads[k].unique
  end
  for from = 1, #keys, SLICE do
    local values = call('HMGET', UNIQUE, unpack(keys, from, math.min(from + SLICE - 1, #keys)))
    for i = 1, #values do
      held[keys[from + i - 1]] = values[i]
    end
  end
  return held
end

-- Gives the new jobs of a request their keys, and takes those out that others stand for, or that are
-- parked. r: records, heads, dues, places, codes; put(from, to) puts the jobs from `from` to `to` where
-- they belong. Returns how many are left, and when the first of them is due.
local function take_keys(r, n)
  local held, taken, left, there, soonest, windows = held_keys(r.heads, n), {}, 0, 0, math.huge, 0
  local function put()
    for i = 1, #taken, SLICE do
      call('HSET', UNIQUE, unpack(taken, i, math.min(i + SLICE - 1, #taken)))
    end
    if left > there then
      r.put(there + 1, left)
    end
    taken, there = {}, left
  end
  for k = 1, n do
    local id, record, head = r.records[2 * k - 1], r.records[2 * k], r.heads[k]
    local due, key, text, code = r.dues[k], head.unique, nil, nil
    if key and held[key] then -- also by a job of this request, which has to be there now
      put()
      local job = { id = id, head = head, record = record, due = due + 0, place = r.places[k] }
      text, code = take_key(job)
      due = string.format('%.0f', job.due)
    elseif key then
      held[key], due = true, due_of(head, due, now)
      text = text_of({ id = id, keeps = keeps_of(head), window = window_of(head, now),
        first = head.debounce and now or 0 })
    end
    if code then
      r.codes[r.places[k]] = code
    else
      left = left + 1
      r.records[2 * left - 1], r.records[2 * left] = id, record
      r.heads[left], r.dues[left], soonest = head, due, math.min(soonest, due + 0)
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
  return left, soonest
end
