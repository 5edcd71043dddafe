-- seen.lua - whether a numbered request was executed before. A step that answers it then.
--
-- Gives SEEN, highest, bits: what is to be remembered; words[2]: of some id it is told how it ended.
--
-- What is remembered of a producer: the highest number that was executed, and a bit for each of
-- the SPAN numbers up to it. A number that was refused (the script was not known, or memory was
-- full) may be followed by one that was executed, and its answer may be lost: the highest number
-- alone would then say that it was executed too, and its jobs would be nowhere.
local SPAN = 32
local SEEN, highest, bits = P .. 'seen:' .. ARGV[1], ARGV[2], '1'
local words = call('MGET', SEEN, P .. 'ended:', P) -- P: lib/guard.lua
if words[1] and ARGV[1] ~= '' then
  local known, mask = string.match(words[1], '^(%d+):(-?%d+)$')
  local age = known - ARGV[2]
  if age >= SPAN or age >= 0 and bit.band(mask, bit.lshift(1, age)) ~= 0 then
    return { OK, now, 1, {} }
  end
  if age >= 0 then
    highest, bits = known, bit.bor(mask, bit.lshift(1, age))
  elseif age == -1 and mask == '-1' then -- as it is in the long run
    bits = mask
  elseif age > -SPAN then
    bits = bit.bor(bit.lshift(mask, -age), 1)
  end
end
