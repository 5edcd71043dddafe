-- sharded.lua - a queue that is divided into shards has no jobs of its own. A step of the scripts that
-- would be wrong there: they refuse, and tell the shards to the client.
-- Takes uses: of meta.
--- @include "lib/keys.lua"
if uses and string.find(uses, 's', 1, true) then
  return { err = 'SHARDED holdfast: ' .. (call('HGET', META, 'shards') or '') }
end
