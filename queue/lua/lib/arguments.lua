-- arguments.lua - the arguments of requests.

-- An argument that is a number: digits, at most `most`. Anything else (nan, inf, 1e30, 0x10, 0.5) is
-- refused; so a script reads its numbers before it writes anything.
local function digits(text, most)
  local value = string.find(text, '^%d+$') and tonumber(text)
  if not value or value > most then
    error(string.format('holdfast: expected a number from 0 to %.0f, found %s', most,
      string.gsub(string.sub(text, 1, 32), '%c', '?')), 0)
  end
  return value
end

-- A number that a holder says of its job: `most` if it is more, 0 if it is below. A verdict that was
-- refused for its delay would be sent again and again.
local function clamped(text, most)
  return math.min(most, digits(string.gsub(text, '^%-%d+$', '0'), math.huge))
end

-- A name of an id, a queue, a type, a producer or a namespace.
local function is_name(text)
  return type(text) == 'string' and #text <= 128 and string.find(text, '^[%w%._:%-]+$')
end

-- Whether it is the prefix of a queue, or of a shard of one: hf:{queue}:, hf:{queue/3-8}:.
local function is_queue_prefix(prefix)
  local ns, tag = string.match(prefix, '^([^{}]+):{([^{}]+)}:$')
  return ns and is_name(ns) and is_name(string.match(tag, '^(.+)/%d+%-%d+$') or tag)
end

local function is_registry_prefix(prefix)
  local ns = string.match(prefix, '^([^{}]+):{/}:$')
  return ns and is_name(ns)
end
