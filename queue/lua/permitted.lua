-- May this user of Redis send certain commands, on this queue's keys? Reads nothing. Redis before
-- 7.0 cannot tell, and then all are taken to be permitted.
--
--  KEYS[1]   prefix      hf:{queue}:
--  ARGV[1..] command     in capitals; a word that is no command does not matter
--  returns   {OK, now} | an error NOPERM that names those that are not permitted. Sent twice: the
--            same.
local refused = {}
for i = 1, redis.acl_check_cmd and #ARGV or 0 do
  local known, may = pcall(redis.acl_check_cmd, ARGV[i], KEYS[1], KEYS[1])
  if known and not may then
    refused[#refused + 1] = string.lower(ARGV[i])
  end
end
if #refused > 0 then
  return redis.error_reply('-NOPERM this user has no permissions to run '
    .. table.concat(refused, ', ') .. ' in scripts')
end
--- @step "steps/guard.lua"
local at = call('TIME') -- not before the check, which may name it
return { OK, at[1] * 1000 + floor(at[2] / 1000) }
