-- with_dues.lua - the form of `last` for jobs that are due at different times.

-- What `last` says of jobs that are due at different times: `=due`, then the ids for which it is.
local function with_dues(ids, dues, n)
  local words = {}
  for k = 1, n do
    words[k] = dues[k] == dues[k - 1] and ids[k] or '=' .. dues[k] .. ' ' .. ids[k]
  end
  return words
end
