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

-- Each with a function that tells whether a value of it is right, and what was expected.
local OPTIONS = {
  { 'priority', one_of('high', 'low') },
}

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
end
