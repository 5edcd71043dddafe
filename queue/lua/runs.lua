-- A worker tells what ended in a second, and what runs. It does so while `hf:{/}:watch` exists, as `beat` answers.
--
--  KEYS[1]  prefix      hf:{queue}:
--  ARGV[1]  entry       a line `<worker> <ms> <ok> <failed> <cut>`, and a line for each of 0 to 200 runs
--  returns  {OK, now}. Sent twice: the stream has the entry twice, so a worker does not send it again.
--- @step "steps/guard.lua"
local BYTES_MAX, ENTRIES, KEPT_MS = 98304, '600', '60000'
local worker, lines = string.match(ARGV[1], '^(%S+) %d+ %d+ %d+ %d+\n(.*)$')
if not is_name(worker) or #ARGV[1] > BYTES_MAX or lines ~= '' and string.sub(lines, -1) ~= '\n' then
  error('holdfast: expected an entry of runs, found ' .. string.gsub(string.sub(ARGV[1], 1, 32), '%c', '?'), 0)
end
call('XADD', RUN_EVENTS, 'MAXLEN', '~', ENTRIES, '*', 'e', ARGV[1])
call('PEXPIRE', RUN_EVENTS, KEPT_MS)
return { OK, now }
