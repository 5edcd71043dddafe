/* priority.h - the words for a job's priority. */
#ifndef HF_CLI_COMMON_PRIORITY_H
#define HF_CLI_COMMON_PRIORITY_H

#include <stdbool.h>

#include "holdfast/producer.h"

/* "high", "normal" or "low". */
const char *hf_priority_name(hf_priority priority);

/* False: it is none of these words. */
bool hf_priority_read(const char *text, hf_priority *out);

#endif
