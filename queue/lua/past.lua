-- What a worker did in a minute is added to the history of a queue.
--
--  KEYS[1]  prefix      hf:{queue}:
--  ARGV[1]  worker      its id
--  ARGV[2]  number      of this request, from 1 on, rising for each worker and queue
--  ARGV[3]  minute      the minute's number (lib/keys.lua), on Redis's clock
--  ARGV[4]  keep        ms for which the history is kept, at most 172800000
--  ARGV[5..] type, sums for each of 1 to 8 types, or `*` for those without a place of their own: words with a
--           space between them. `d=`, `f=` and `x=` count the attempts that were done, those that failed, and
--           the jobs that died; `R=` and `W=` are ms of runs and waits; `r<n>=` and `w<n>=` count the runs and
--           waits of at most 2^(n/2) ms, n from 0 to 44; 45: longer ones
--  returns  {OK, now}. Sent twice: it counts once, because `past:@<worker>` remembers the number for 20 minutes
--           of Redis's clock.
--
-- No field is written where Redis is full: history is no reason to grow. A minute that is not one of the last 13
-- was counted by a clock that was set since. It counts as this minute: nothing is lost, and no key is made that
-- would end late, or has ended.
--- @step "steps/guard.lua"
local SUM_MAX, TYPES_MAX, PARTS_MAX, BUCKETS, WORDS_MAX = 999999999999999, 64, 8, 46, 97
local KNOWN_MS, LATE_MINUTES, FRESH_MS = 1200000, 12, 10000
local worker, number, minute = ARGV[1], digits(ARGV[2], TIME_MAX), digits(ARGV[3], TIME_MAX)
local keep = digits(ARGV[4], TENS_MS)

local function refuse(what, found)
  error('holdfast: expected ' .. what .. ', found ' .. string.gsub(string.sub(found, 1, 32), '%c', '?'), 0)
end

local function is_bucket(kind, n)
  return string.find('rw', kind, 1, true) and string.find(n, '^[1-9]?%d$') and n + 0 < BUCKETS
end

local function check_sums(sums)
  local n = 0
  for word in string.gmatch(sums, '%S+') do
    local kind, bucket, sum = string.match(word, '^(%a)(%d*)=(%d+)$')
    if not kind or not (bucket == '' and string.find('dfxRW', kind, 1, true) or is_bucket(kind, bucket)) then
      refuse('sums of a type', word)
    end
    digits(sum, SUM_MAX)
    n = n + 1
  end
  if n == 0 or n > WORDS_MAX then
    refuse('1 to ' .. WORDS_MAX .. ' sums of a type', sums)
  end
end

if not is_name(worker) then
  refuse('the id of a worker', worker)
end
local types, added, named = {}, {}, {}
for i = 5, #ARGV, 2 do
  local type, sums = ARGV[i], ARGV[i + 1] or ''
  if type ~= '*' and not is_name(type) or named[type] then
    refuse('a type that is named once', type)
  end
  check_sums(sums)
  types[#types + 1], added[#added + 1], named[type] = type, sums, true
end
if #types == 0 or #types > PARTS_MAX then
  refuse('1 to ' .. PARTS_MAX .. ' types', #types .. '')
end
local SEEN = PAST .. '@' .. worker
if (tonumber(call('GET', SEEN) or nil) or 0) >= number then
  return { OK, now }
end
local this = floor(now / MINUTE_MS)
if minute > this or minute < this - LATE_MINUTES then
  minute = this
end

-- The sums of both, in the order in which they came.
local function add(old, new)
  local sums, names = {}, {}
  for name, n in string.gmatch((old or '') .. ' ' .. new, '(%a%d*)=(%d+)') do
    local sum = sums[name]
    if not sum then
      names[#names + 1] = name
    end
    sums[name] = (sum or 0) + n
  end
  for i, name in ipairs(names) do
    names[i] = name .. '=' .. string.format('%.0f', math.min(sums[name], SUM_MAX))
  end
  return concat(names, ' ')
end

-- The attempts of this step that were done or failed, of all types.
local function all_of(old, name, of_type)
  local n = tonumber(string.match(old or '', name .. '=(%d+)') or nil) or 0
  for _, sums in ipairs(added) do
    n = n + (tonumber(string.match(sums, of_type .. '=(%d+)') or nil) or 0)
  end
  return string.format('%s=%.0f ', name, math.min(n, SUM_MAX))
end

local function add_to(key, ends, now_is)
  local held = call('HMGET', key, '', '*', CRASHED_FIELD, LOST_FIELD, unpack(types))
  local room, others, fields = TYPES_MAX - call('HLEN', key), held[2], {}
  for i = 1, 4 do
    room = room + (held[i] and 1 or 0)
  end
  for i, type in ipairs(types) do
    local old = held[i + 4]
    if type == '*' or not old and room <= 0 then
      others = add(others, added[i])
    else
      room = room - (old and 0 or 1)
      fields[#fields + 1], fields[#fields + 2] = type, old and add(old, added[i]) or added[i]
    end
  end
  if others ~= held[2] then
    fields[#fields + 1], fields[#fields + 2] = '*', others
  end
  fields[#fields + 1], fields[#fields + 2] = '',
    all_of(held[1], 'D', 'd') .. all_of(held[1], 'F', 'f') .. (now_is or string.match(held[1] or '', 's=.*') or '')
  call('HSET', key, unpack(fields))
  local life = math.max(1, ends - now)
  if call('PTTL', key) < life then
    call('PEXPIRE', key, string.format('%d', life))
  end
end

local over, ten = (minute + 1) * MINUTE_MS, floor(minute * MINUTE_MS / TEN_MS)
local now_is = now < over + FRESH_MS and sample()
call('SET', SEEN, ARGV[2], 'PX', string.format('%d', KNOWN_MS))
add_to(PAST .. string.format('%.0f', minute), over + math.min(keep, MINUTES_MS), now_is)
add_to(PAST .. 't' .. string.format('%.0f', ten), (ten + 1) * TEN_MS + keep, now_is)
return { OK, now }
