-- as_expired.lua - how a job is shown that expired, while no worker has come yet to remove it.

-- When it expired; and if it is going to be dead, its record as it will be then, else nil.
local function as_expired(id, record)
  local at, line = call('ZSCORE', EXPIRES, id) + 0, string.match(record, '^[^\n]*')
  if not string.find(line, '"expired":%s*"dead"') then
    return at
  end
  return at, rewrite(record, function(head)
    head.reason, head.error = 'expired', string.format('it did not start within %gs', head.start_within / 1000)
  end)
end
