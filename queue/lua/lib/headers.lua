-- headers.lua - the headers of a new job.
local HEADERS_MAX = 4096 -- bytes of JSON

-- What was expected of them; nil: they are as they should be. line: of the record; head: what it says.
local function wrong_headers(line, head)
  local what = 'as its headers one JSON object whose values are texts, at most 4096 bytes'
  if head.headers == nil then
    return nil
  elseif type(head.headers) ~= 'table' then
    return what
  end
  for name, value in pairs(head.headers) do
    if type(name) ~= 'string' or type(value) ~= 'string' then
      return what
    end
  end
  local bare = string.gsub(line, '\\.', '..')
  bare = string.gsub(bare, '"[^"]*"', function(text)
    return (string.gsub(text, '[{}]', '.')) -- brackets in texts do not count
  end)
  local found = false
  for object in string.gmatch(bare, '"headers"%s*:%s*(%b{})') do
    found = true
    if #object > HEADERS_MAX then
      return what
    end
  end
  return not found and what or nil -- an empty list
end
