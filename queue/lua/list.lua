-- A page of the jobs in a state, in their order, without payloads.
--
--  KEYS[1]  prefix      hf:{queue}:
--  ARGV[1]  state       ready, delayed, retry, running, dead, parked or done (those that are kept)
--  ARGV[2]  after       '' : from the start; else the id after whose place the page begins
--  ARGV[3]  limit       jobs, 1..1000; fewer where records are large
--  ARGV[4]  score       that `after` had when it was read: the page begins behind that place,
--           even if the job has moved; '' : not known
--  returns  {OK, now, next, score, {id, score, line, payload bytes, token, lease, crashes, kept, marks}, ...}
--           | {GONE, now} (`after`, of no known score, is not in that set). next: the last id that
--           was looked at, with its score, '' at the end of the set: of `retry` and `done`, and where
--           jobs have expired, a page may have few jobs, or none, before it. kept: of a done job until when it is kept, else 0.
--           line is the record's first line with its newline, '' if it has none. marks: as `job`
--           answers, none if the queue has none.
--- @step "steps/guard.lua"
local uses = call('HGET', META, 'uses')
--- @step "steps/sharded.lua"
local PAGE_BYTES, state, limit = 1024 * 1024, ARGV[1], tonumber(ARGV[3])
local one = state == 'running' or state == 'dead' or state == 'parked' or state == 'done'
local sets, records = one and { P .. state } or levels(), state == 'done' and RESULTS or JOBS

-- Whether a job of these sets is in the list.
local function is_wanted(line, kept)
  if state == 'retry' then
    return string.find(line, '"attempts":%s*[1-9]')
  end
  return state ~= 'done' or kept > now
end

-- The first entries of two such lists, as many as the page has.
local function merged(a, b)
  local all, i, j = {}, 1, 1
  while #all < 2 * limit and (a[i] or b[j]) do
    local x, y = tonumber(a[i + 1] or math.huge), tonumber(b[j + 1] or math.huge)
    if a[i] and (not b[j] or x < y or x == y and is_before(a[i], b[j])) then
      all[#all + 1], all[#all + 2], i = a[i], a[i + 1], i + 2
    else
      all[#all + 1], all[#all + 2], j = b[j], b[j + 1], j + 2
    end
  end
  return all
end

-- The first place of a set behind an id of that score, whether it is there or not.
local function behind(set, id, score)
  local low, high = call('ZCOUNT', set, '-inf', '(' .. score), call('ZCOUNT', set, '-inf', score)
  while low < high do
    local middle = floor((low + high) / 2)
    if is_before(id, call('ZRANGE', set, middle, middle)[1]) then
      high = middle
    else
      low = middle + 1
    end
  end
  return low
end

local after, score = ARGV[2], ARGV[4]
for _, set in ipairs(after ~= '' and score == '' and sets or {}) do
  score = call('ZSCORE', set, after) or score
end
if after ~= '' and score == '' then
  return { GONE, now }
end

-- Those of all levels in one order: {id, score, ...}.
local found = {}
for _, set in ipairs(sets) do
  local first = 0
  if after ~= '' then
    first = behind(set, after, score)
  elseif state == 'delayed' or state == 'retry' then
    first = call('ZCOUNT', set, '-inf', now)
  end
  found = merged(found, call('ZRANGE', set, first, first + limit - 1, 'WITHSCORES'))
end
local whole = #found < 2 * limit
local answer = { OK, now, whole and '' or found[#found - 1], whole and 0 or time_of(found[#found]) }
local marks, bytes, may_expire = has_marks(P), 0, (not one or state == 'parked') and call('EXISTS', EXPIRES) == 1
for i = 1, #found, 2 do
  local id, score = found[i], time_of(found[i + 1])
  if state == 'ready' and score > now then
    answer[3] = ''
    break
  end
  if bytes > PAGE_BYTES then
    answer[3], answer[4] = found[i - 2], time_of(found[i - 1])
    break
  end
  local kept = state == 'done' and floor(call('ZSCORE', KEPT, id) or 0) or 0
  local record = call('HGET', records, id) or ''
  bytes = bytes + #record
  local nl = string.find(record, '\n', 1, true) or 0
  local line = string.sub(record, 1, nl)
  if is_wanted(line, kept) and not (may_expire and is_late(id)) then
    local mark = marks and call('HGET', CRASHES, id) or '0'
    local token = state == 'running' and call('GET', LOCK .. id) or ''
    local lease = token ~= '' and lease_left(id) or 0
    answer[#answer + 1] = {
      id, score, line, #record - nl, token, lease, tonumber(string.match(mark, '^%d+')) or 0,
      kept, marks and marks_of(id, token),
    }
  end
end
return answer
