/* job_why.h - what keeps a job, as --json has it. */
#ifndef HF_CLI_JOBS_JOB_WHY_H
#define HF_CLI_JOBS_JOB_WHY_H

#include <jansson.h>

#include "seen/reasons.h"

/* NULL: out of memory. */
json_t *hf_job_why_json(const hf_job_why *why, const hf_reason *reasons, size_t n);

#endif
