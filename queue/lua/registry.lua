-- A slice of the search for queues that have keys and are not in the registry.
--
--  KEYS[1]  prefix      of the registry, hf:{/}:; if its `queues` is not a set, it has none
--  ARGV[1]  namespace   the beginning of all keys
--  ARGV[2]  cursor      '0' at the start
--  ARGV[3]  fix         1: they are registered; 0: nothing is written
--  ARGV[4]  not_after   ms on Redis's clock; 0: no limit
--  returns  {OK, now, cursor, {name, ...}} | {LATE, now}; cursor is the one to ask for next, '0'
--           at the end. Several slices may return the same name. An invalid name is returned, but not
--           registered. Sent twice: registered names are not returned again.
--- @include "lib/guard.lua"
--- @include "lib/late.lua"
--- @include "lib/open_writes.lua"
if late(ARGV[4]) then
  return { LATE, now }
end
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
    local good = #name <= 128 and string.match(name, '^[%w%._:-]+$')
    if ARGV[3] == '1' and good and not broken then
      open_writes()
      call('SADD', queues, name)
    end
  end
end
return { OK, now, page[1], names }
