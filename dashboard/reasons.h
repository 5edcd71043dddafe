/* reasons.h - what keeps a job, as words and sentences. */
#ifndef HF_DASHBOARD_REASONS_H
#define HF_DASHBOARD_REASONS_H

#include <jansson.h>

#include "dashboard/poller.h"

/* [{"word","text"}], the weightiest first. NULL: no memory. */
json_t *hf_reasons_json(hf_reader *r, const hf_job_why *why);
/* `job why --json`, with these sentences as `texts`. */
json_t *hf_reasons_whole_json(hf_reader *r, const hf_job_why *why);

#endif
