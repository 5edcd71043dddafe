-- with_start_by.lua - a record that tells when its job expires.

local function with_start_by(record, by)
  return '{"start_by":' .. by .. ',' .. string.sub(record, 2)
end
