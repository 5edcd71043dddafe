-- end_of.lua - the end of one job of an id, for the clients that wait for it.
--
-- While the job waits or runs, `waits` says of it `<accepted> <client> ...`: when it was accepted, ms, and who
-- waits; `*` is a client that has not come yet. Its exit turns this into END: `<ms> <how> <client> ...`. That
-- lasts a day, and a minute when each of these clients has read it. No two jobs of one id have one `accepted`.

local function end_of(id, accepted)
  return P .. 'ended:@' .. accepted .. ':' .. id
end
