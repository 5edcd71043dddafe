/* runs.h - a run as --json has it. */
#ifndef HF_CLI_ADMIN_RUNS_H
#define HF_CLI_ADMIN_RUNS_H

#include <jansson.h>

#include "seen/running.h"

/* NULL: out of memory. */
json_t *hf_runs_json(const hf_seen_run *run);

#endif
