-- guard.lua - refuses to run where some of the keys may be missing. A step, the first one. While a cluster
-- moves a slot, a client that follows ASK would run the script on the node that takes the slot over.
-- That node refuses a command of two keys when one does not exist, and the prefix never exists. So
-- the first command of each script names the prefix and another key: this one, or an MGET that enqueue
-- and complete need anyway (it would be 3 and 8 % of their instructions).
call('EXISTS', P, P .. '/')
