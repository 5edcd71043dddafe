-- marks_of.lua - what runs have left beside a job, for those that look at it.

local function marks_of(id, token)
  local fence, progress = string.match(call('HGET', PROGRESS, id) or '', '^(%d+) (.*)$')
  local told = fence and string.sub(token, -#fence - 1) == ':' .. fence
  local checkpoint = string.match(call('HGET', CHECKPOINTS, id) or '', '^%d+ %d+ %S+ (.*)$') or ''
  local _, runs = string.gsub(call('HGET', LOGS, id) or '', '%d+', '')
  return { told and progress or '', #checkpoint, runs }
end
