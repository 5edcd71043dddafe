-- names.lua - names and prefixes that others give.

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
