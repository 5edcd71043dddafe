-- put_jobs.lua - new jobs go where they wait, as their options say.
--- @include "lib/keys.lua"
--- @include "lib/slice.lua"
--- @include "lib/levels.lua"
--- @include "lib/expiry.lua"
--- @include "lib/uses.lua"

-- The queue uses this feature from now on; `uses` is that of meta, and mostly has the letter.
local function note_used(uses, letter)
  if not (uses and string.find(uses, letter, 1, true)) then
    note_use(letter, true)
  end
end

-- records: {id, record, ...}; of each job the line of its record in heads, and when it is due, a text, in
-- dues: those of the jobs from `from` to `to`. A record gets its start_by.
local function put_jobs(uses, records, heads, dues, from, to)
  local times = {} -- by set
  local function add(set, time, id)
    local list = times[set] or {}
    list[#list + 1], list[#list + 2], times[set] = time, id, list
  end
  for k = from, to do
    local id, head = records[2 * k - 1], heads[k]
    local by = start_by(head.start_within, dues[k])
    add(level_of(head.priority), dues[k], id)
    if by then
      add(EXPIRES, by, id)
      records[2 * k] = with_start_by(records[2 * k], by)
    end
  end
  for i = 2 * from - 1, 2 * to, SLICE do
    call('HSET', JOBS, unpack(records, i, math.min(i + SLICE - 1, 2 * to)))
  end
  for set, list in pairs(times) do
    for i = 1, #list, SLICE do
      call('ZADD', set, unpack(list, i, math.min(i + SLICE - 1, #list)))
    end
  end
  if times[SCHEDULE .. ':h'] or times[SCHEDULE .. ':l'] then
    note_used(uses, 'l')
  end
  if times[EXPIRES] then
    note_used(uses, 'x')
  end
end
