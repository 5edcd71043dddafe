/* rate.h - this many in a time, as people write it: "100/1s", "50/s", "0". */
#ifndef HF_CLI_COMMON_RATE_H
#define HF_CLI_COMMON_RATE_H

#include <stdbool.h>
#include <stdint.h>

/* COUNT/DURATION, the duration a unit alone ("/s") or with its number; "0" alone means
 * none (*per_ms is 0 then). False: it is none, or more than 1,000,000 or a day. */
bool hf_parse_rate(const char *text, int64_t *count, int64_t *per_ms);

#endif
