-- max_bytes.lua - the bound of the records in a claim.
local MAX_BYTES = 8 * 1024 * 1024 -- of records in a claim
