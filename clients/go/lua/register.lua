-- Register a queue: tools find it by its name.
-- Stable since 0.2: clients of all languages call it (docs/keys.md).
--
--  KEYS[1]  prefix  of the registry, hf:{/}:
--  ARGV[1]  name    the queue's, 1 to 128 of A-Z a-z 0-9 . _ : -
--  returns  {OK, now}. Sent twice: the same. An error that begins with `ERR holdfast:` changes nothing.
local call, concat, floor = redis.call, table.concat, math.floor
local P = KEYS[1]
local time = call('TIME')
local micros = string.sub('00000' .. time[2], -6) -- six digits
local stamp = time[1] .. string.sub(micros, 1, 3)
local now = stamp + 0
call('EXISTS', P, P .. '/')
local function is_name(text)
  return type(text) == 'string' and #text <= 128 and string.find(text, '^[%w%._:%-]+$')
end
local function is_registry_prefix(prefix)
  local ns = string.match(prefix, '^([^{}]+):{/}:$')
  return ns and is_name(ns)
end
if not is_registry_prefix(P) then
  error('holdfast: register: expected the key hf:{/}:', 0)
elseif not is_name(ARGV[1]) then
  error('holdfast: register: expected the name of a queue, 1 to 128 of A-Z a-z 0-9 . _ : -', 0)
end
call('SADD', P .. 'queues', ARGV[1])
return { 0, now }
