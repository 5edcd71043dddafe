-- options.lua - the options of a job that the script which accepts it acts on: fields of its record's line.

local function one_of(...)
  local words = { ... }
  return function(value)
    for _, word in ipairs(words) do
      if value == word then
        return true
      end
    end
    return false, 'as its %s ' .. concat(words, ' or ')
  end
end

-- A number of ms.
local function a_time(value)
  local good = type(value) == 'number' and value % 1 == 0 and value >= 1 and value <= DELAY_MAX
  return good, 'as its %s a whole number of ms from 1 to ' .. string.format('%.0f', DELAY_MAX)
end

local function is_key(value)
  return type(value) == 'string' and #value >= 1 and #value <= 256, 'as its %s a text of 1 to 256 bytes'
end

local function is_type(value)
  return is_name(value), 'as its %s a type, 1 to 128 of A-Z a-z 0-9 . _ : -'
end

local function is_one(value)
  return value == 1, 'as its %s 1'
end

-- Each with a function that tells whether a value of it is right, and what was expected.
local OPTIONS = {
  { 'priority', one_of('high', 'low') }, { 'start_within', a_time }, { 'expired', one_of('dead') },
  { 'unique', is_key },
  { 'unique_until', one_of('start', 'done') },
  { 'unique_for', a_time },
  { 'on_conflict', one_of('replace', 'next', 'cancel') },
  { 'debounce', a_time },
  { 'max_wait', a_time },
  { 'throttle', a_time },
  { 'on_dead', is_type },
  { 'awaited', is_one },
  { 'replace_dead', is_one },
}

-- The fields that Holdfast writes itself, and what a caller may have meant.
local RESERVED = {
  { 'attempts', 'max_attempts is the limit' }, { 'start_by', 'start_within is the option' },
  { 'reason' }, { 'history' }, { 'error' }, { 'failed' }, { 'refused' }, { 'unhandled' }, { 'died' },
  { 'cron' }, { 'scheduled' }, { 'alone' },
}

-- What was expected of a new job's line instead of a field that Holdfast writes; nil: it has none.
local function reserved_field(head)
  for _, field in ipairs(RESERVED) do
    local name = field[1]
    if head[name] ~= nil then
      return 'no ' .. name .. ' in its record; ' .. (field[2] or 'Holdfast writes it')
    end
  end
end

-- The first option that is wrong, and what was expected; nil: all are as they should be.
local function wrong_option(head, optional)
  for _, option in ipairs(OPTIONS) do
    local name, value = option[1], head[option[1]]
    if value ~= nil and not optional then
      return name, 'no ' .. name .. ' in its record: the script enqueue_with takes such jobs'
    end
    local good, expected = true, nil
    if value ~= nil then
      good, expected = option[2](value)
    end
    if not good then
      return name, string.format(expected, name)
    end
  end
  return wrong_together(head)
end
