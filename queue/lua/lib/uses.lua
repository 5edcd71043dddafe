-- uses.lua - the features that a queue uses beyond the usual: letters in `uses` of meta, in any order.
-- p: it is paused; n: it has max_running; r: it has a rate; b: it has had a record above 8 KiB;
-- m: a job has a mark (lib/has_marks.lua); s: it is divided into shards; l: a job has a high
-- or low priority (lib/levels.lua); x: a job expires (lib/expiry.lua); k: done jobs are kept
-- (lib/keeping.lua); c: it has schedules; u: a job has a unique key (lib/unique.lua); f: a job frees its
-- unique key when it starts; e: leases are over by readings (lib/readings.lua). Without a letter no script
-- reads the keys of its feature: one field instead of four, and no EXISTS. A worker that meets a letter it does
-- not know leaves the queue alone.

local function note_use(letter, on)
  local uses = call('HGET', META, 'uses') or ''
  local others = string.gsub(uses, letter, '')
  if on and others == uses then
    call('HSET', META, 'uses', uses .. letter)
  elseif not on and others ~= uses then
    if others == '' then
      call('HDEL', META, 'uses')
    else
      call('HSET', META, 'uses', others)
    end
  end
end
