-- read_options.lua - the options of a new job. A step for each.
--
-- Takes record; options_of: those of the lines so far. Gives options: the fields of its line; key: its unique
-- key, nil: it has none. And of all jobs so far: homes: where they wait, by options, if not in SCHEDULE;
-- expiring: one of them may expire; usual: each has its unique key until its end; starting: one of them until
-- its start; awaiting: a client will wait for the end of one of them. To decode a line takes a fifth of an enqueue of many. Most lines of a request differ in their
-- unique keys alone, which the library writes first: what follows is decoded once.
local key = string.match(record, '^{"unique":"([^"\\]*)",')
local line = string.sub(record, key and #key + 14 or 1, (string.find(record, '\n', 1, true) or 0) - 1)
local options = options_of[line]
if not options then
  options = cjson.decode(key and '{' .. line or line)
  if options.priority then
    homes = homes or {}
    homes[options] = level_of(options.priority)
  end
  options_of[line], expiring = options, expiring or options.start_within
  awaiting = awaiting or options.awaited
  usual = usual and not (options.unique_until or options.unique_for or options.debounce or options.throttle)
  starting = starting or options.unique_until == 'start' or options.debounce
end
key = options.unique or key
