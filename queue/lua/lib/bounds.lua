-- bounds.lua - how late a time may be, and how long a delay.

-- No time is later than the end of the year 9999, and no delay is longer than 100 years, in ms. The
-- same two bounds are in include/holdfast/producer.h.
local TIME_MAX, DELAY_MAX = 253402300799999, 3155760000000
