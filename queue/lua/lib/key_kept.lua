-- key_kept.lua - the keys of done jobs that are kept.
local DONE, KEPT, RESULTS = P .. 'done', P .. 'kept', P .. 'results'
