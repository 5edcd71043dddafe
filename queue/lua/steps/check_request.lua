-- check_request.lua - whether a request to enqueue is as the header of its script says. A step.
--
-- Takes args, n, made; optional: the records may name options. An error that begins with `ERR holdfast:`
-- changes nothing. The library has checked what it sends. To look at each character of each id costs a
-- fifth of a large request.
if made ~= 'N' and made ~= 'C' and not string.find(made, '^[NC]') then
  local function must(good, k, what)
    if not good then
      error(string.format('holdfast: %s: expected %s', k and 'job ' .. k or 'enqueue', what), 0)
    end
  end
  local lines = {} -- many jobs of a request have the same line
  local function wrong_record(text)
    local line = #text <= 67108864 and string.match(text, '^({[^\n]*})\r?\n') or ''
    if lines[line] == nil then
      local wrong, head = wrong_line(line, WHOLE)
      wrong = wrong or reserved_field(head) or wrong_headers(line, head)
      lines[line] = wrong or select(2, wrong_option(head, optional)) or false
    end
    return lines[line]
  end
  must(is_queue_prefix(P), nil, 'the key hf:{QUEUE}:, with the name of a queue, 1 to 128 of A-Z a-z 0-9 . _ : -')
  must(n >= 1 and n <= 10000 and (#args - 5) % 3 < 2, nil, 'id, due, record of 1 to 10000 jobs')
  must(args[1] == '' or is_name(args[1]), nil, 'a producer, 1 to 128 of A-Z a-z 0-9 . _ : -')
  digits(args[2], 2 ^ 53)
  digits(args[3], TIME_MAX)
  must(digits(args[4], DELAY_MAX) > 0 or args[1] == '', nil, 'to remember a number for 1 ms or more')
  digits(args[5], DELAY_MAX)
  for k = 1, n do
    local i = 3 + 3 * k
    local due = string.find(args[i + 1], '^%-?%d+$') and args[i + 1] + 0
    must(is_name(args[i]), k, 'an id, 1 to 128 of A-Z a-z 0-9 . _ : -')
    must(due and due >= -DELAY_MAX and due <= TIME_MAX, k, 'to be due at 0, a time, or minus a delay')
    local wrong = wrong_record(args[i + 2])
    must(not wrong, k, wrong)
  end
end
