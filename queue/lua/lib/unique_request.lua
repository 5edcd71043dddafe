-- unique_request.lua - the jobs of a request that have unique keys.
--- @include "lib/slice.lua"
--- @include "lib/unique_take.lua"

-- Gives the new jobs of a request their keys, and takes those out that others stand for, or that are
-- parked. r: records, heads, dues, places, codes; put(from, to) puts the jobs from `from` to `to` where
-- they belong; held: the keys that are taken. Sets r.taken if an id was taken. Returns how many are left, and when the first of them is
-- due.
local function take_keys(r, n, held)
  local taken, left, there, soonest, windows = {}, 0, 0, math.huge, 0
  local function put()
    for i = 1, #taken, SLICE do
      call('HSET', UNIQUE, unpack(taken, i, math.min(i + SLICE - 1, #taken)))
    end
    if left > there then
      r.put(there + 1, left)
    end
    taken, there = {}, left
  end
  local records, heads, dues = r.records, r.heads, r.dues
  for k = 1, n do
    local id, record, head = records[2 * k - 1], records[2 * k], heads[k]
    local due, key, text, code = dues[k], head.unique, nil, nil
    if key and held[key] then -- also by a job of this request, which has to be there now
      put()
      local job = { id = id, head = head, record = record, due = due + 0, place = r.places[k] }
      text, code = take_key(job)
      due = string.format('%.0f', job.due)
    elseif is_taken(id) then
      code = EXISTS
    elseif key then
      held[key], text = true, id .. ' ' .. keeps_of(head) .. ' 0 0'
      if head.debounce or head.unique_for or head.throttle then
        due = due_of(head, due, now)
        text = text_of({ id = id, keeps = keeps_of(head), window = window_of(head, now),
          first = head.debounce and now or 0 })
      end
    end
    if code then
      r.codes[r.places[k]] = code
      r.taken = r.taken or #conflicts_met == 0
    else
      left = left + 1
      if left < k then
        records[2 * left - 1], records[2 * left], heads[left] = id, record, head
      end
      dues[left] = due
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
  return left, soonest
end
