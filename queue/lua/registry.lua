-- A slice of the search for queues that have keys and are not in the registry.
--
--  KEYS[1]  prefix      of the registry, hf:{/}:; if its `queues` is not a set, it has none
--  ARGV[1]  namespace   the beginning of all keys
--  ARGV[2]  cursor      '0' at the start
--  returns  {OK, now, cursor, {name, ...}}; cursor is the one to ask for next, '0' at the end. Several
--           slices may return the same name. Names may be invalid, and those of queues that were removed.
--- @step "steps/guard.lua"
local prefix = ARGV[1] .. ':{'
local page = call('SCAN', ARGV[2], 'MATCH', prefix .. '*}:*', 'COUNT', 500)
local queues = P .. 'queues'
local names, seen, registry = {}, {}, call('TYPE', queues).ok
local broken = registry ~= 'set' and registry ~= 'none'
for _, key in ipairs(page[2]) do
  local name = string.match(key, '^([^}]*)}', #prefix + 1)
  name = name and string.match(name, '^(.+)/%d+%-%d+$') or name -- a shard is its queue's
  if name and string.sub(name, 1, 1) ~= '/' and not seen[name] and
    (broken or call('SISMEMBER', queues, name) == 0) then
    seen[name] = true
    names[#names + 1] = name
  end
end
return { OK, now, page[1], names }
