/* unique.h - the words for a job's unique key. */
#ifndef HF_CLI_COMMON_UNIQUE_H
#define HF_CLI_COMMON_UNIQUE_H

#include <stdbool.h>

#include "holdfast/producer.h"

/* "start", "done" or "end". False: it is none of these words. */
bool hf_unique_until_read(const char *text, hf_unique_until *out);

/* "skip", "replace", "next" or "cancel". False: it is none of these words. */
bool hf_on_conflict_read(const char *text, hf_on_conflict *out);

/* How a job came off whose key was taken: "skipped", "replaced" or "parked"; NULL: it was
 * not taken. */
const char *hf_conflict_name(hf_conflict conflict);

#endif
