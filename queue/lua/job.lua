-- One job, whole.
--
--  KEYS[1]  prefix      hf:{queue}:
--  ARGV[1]  id
--  returns  {OK, now, set, score, record, token, lease, crashes} | {GONE, now}
--           set: `schedule`, `running` or `dead`; token and lease (ms left) of a running job,
--           else '' and 0; record '' if it is missing
local id = ARGV[1]
for _, name in ipairs({ 'schedule', 'running', 'dead' }) do
  local score = call('ZSCORE', P .. name, id)
  if score then
    local lease = math.max(0, call('PTTL', LOCK .. id))
    local mark = call('HGET', CRASHES, id) or '0'
    return {
      OK, now, name, tonumber(score), call('HGET', JOBS, id) or '',
      call('GET', LOCK .. id) or '', lease, tonumber(string.match(mark, '^%d+')),
    }
  end
end
return { GONE, now }
