-- Register a queue: tools find it by its name.
--
--  KEYS[1]  prefix  of the registry, hf:{/}:
--  ARGV[1]  name    the queue's
--  returns  {OK, now}. Sent twice: the same.
--- @include "lib/guard.lua"
call('SADD', P .. 'queues', ARGV[1])
return { OK, now }
