-- put_away.lua - jobs that a claim buries.

-- To `dead`; `buried` is the list that the claim answers.
local function put_away(buried, set, id, record, reason, text)
  bury(set, id, record, reason, text)
  buried[#buried + 2], buried[#buried + 1] = text, id
end
