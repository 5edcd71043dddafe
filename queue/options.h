/* options.h - which options a job may have: those of hf_job that go into its record. */
#ifndef HF_QUEUE_OPTIONS_H
#define HF_QUEUE_OPTIONS_H

#include "holdfast/error.h"
#include "holdfast/job.h"

/* HF_OK, or HF_INVALID with what was expected and found, after "job 3: ". Not its queue,
 * type, id, payload and times. */
HF_MUSTCHECK hf_err hf_options_check(const hf_job *job, char why[HF_DETAIL_SIZE]);

#endif
