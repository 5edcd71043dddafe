/* job_runs.h - the runs of one job, as far as they are known. */
#ifndef HF_DASHBOARD_JOB_RUNS_H
#define HF_DASHBOARD_JOB_RUNS_H

#include <jansson.h>

#include "dashboard/poller.h"

/* [{run, attempt, worker, start_ms, end_ms, outcome, error, lease_until_ms}], in order:
 * failed attempts and the present run as its record has them, and the runs of which the
 * timeline knows. NULL: no memory. */
json_t *hf_job_runs_json(const hf_reader *r, const hf_job_info *job);

#endif
