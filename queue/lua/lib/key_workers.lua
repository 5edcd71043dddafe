-- key_workers.lua - the keys of the workers, and of the lengths of their leases.
local WORKERS = P .. 'workers'
local LEASES = P .. 'leases'
