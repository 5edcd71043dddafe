-- Register a queue: tools find it by its name.
-- Stable since 0.2: clients of all languages call it (docs/keys.md).
--
--  KEYS[1]  prefix  of the registry, hf:{/}:
--  ARGV[1]  name    the queue's, 1 to 128 of A-Z a-z 0-9 . _ : -
--  returns  {OK, now}. Sent twice: the same. An error that begins with `ERR holdfast:` changes nothing.
--- @step "steps/guard.lua"
if not is_registry_prefix(P) then
  error('holdfast: register: expected the key hf:{/}:', 0)
elseif not is_name(ARGV[1]) then
  error('holdfast: register: expected the name of a queue, 1 to 128 of A-Z a-z 0-9 . _ : -', 0)
end
call('SADD', P .. 'queues', ARGV[1])
return { OK, now }
