-- has_marks.lua - whether a job of a queue has a mark: the letter `m` of `uses`.
local function has_marks(prefix)
  return call('EXISTS', prefix .. 'crashes', prefix .. 'cancel', prefix .. 'waits', prefix .. 'progress',
    prefix .. 'checkpoint', prefix .. 'logs') > 0
end
