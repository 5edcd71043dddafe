-- high.lua - the precision of `high`.

-- `high` is the latest time that was seen here, to within HIGH_MS. If it is ahead, the clock was set
-- back: jobs that were due by then stay due, in their order, a slice of them at a time, or so many
-- slices. Jobs that were to come later wait for their time on the clock as it is now.
local HIGH_MS, STEP_BACK_JOBS = 100, 1000
