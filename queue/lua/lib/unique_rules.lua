-- unique_rules.lua - which options of unique keys go together. The library has the same rules.

-- As wrong_option.
local function wrong_together(head)
  local debounce, throttle, others = head.debounce, head.throttle, head.unique_until or head.unique_for
    or head.on_conflict
  if not head.unique and (others or debounce or throttle) then
    return 'unique', 'a unique key for its other options'
  elseif (debounce and 1 or 0) ~= (head.max_wait and 1 or 0) then
    return 'max_wait', 'debounce and max_wait, or neither'
  elseif debounce and (others or throttle) then
    return 'debounce', 'no unique_until, unique_for, on_conflict and throttle with debounce'
  elseif throttle and (head.unique_for or head.on_conflict and head.on_conflict ~= 'next') then
    return 'throttle', 'no unique_for, and no on_conflict but next, with throttle'
  end
end
