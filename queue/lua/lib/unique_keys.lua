-- unique_keys.lua - the unique keys of a request. A step of enqueue_with.
--
-- Takes records, heads, dues, places, new, n, codes, put, use. Gives those of the jobs that are left,
-- soonest, codes, and conflicts, if there are any. The answer is kept as long as the number of the request.
--- @include "lib/unique_request.lua"
local r = { records = records, heads = heads, dues = dues, places = places, codes = codes or {}, put = put }
new, soonest = take_keys(r, new)
use('u', true)
if #conflicts_met > 0 then
  codes, conflicts = r.codes, conflicts_met
  for k = 1, n do
    codes[k] = codes[k] or OK
  end
  if ARGV[1] ~= '' then
    local answer = P .. 'answer:' .. ARGV[1] .. ':' .. ARGV[2]
    call('SET', answer, cjson.encode({ codes, conflicts }), 'PX', ARGV[4])
  end
end
