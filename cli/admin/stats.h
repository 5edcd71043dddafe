/* stats.h - what ended of a type, as --json has it. */
#ifndef HF_CLI_ADMIN_STATS_H
#define HF_CLI_ADMIN_STATS_H

#include <jansson.h>

#include "holdfast/admin.h"

/* NULL: out of memory. */
json_t *hf_stats_json(const char *queue, const hf_history_type *type);
/* [[bound, n], ...], without those that are empty; the bound of the last one is null. */
json_t *hf_stats_buckets(const int64_t counts[HF_HISTORY_BUCKETS]);

#endif
