/* result.h - the result of a job that is done, and how long both are kept.
 *
 * The job's own `keep` takes precedence over what its handler says, and that over the
 * queue. Of a job that is not kept the result is dropped. */
#ifndef HF_WORKER_RUN_RESULT_H
#define HF_WORKER_RUN_RESULT_H

#include "worker/run/run.h"

/* Takes a copy, instead of an earlier one. HF_TOOBIG, HF_NOMEM: nothing has changed. */
hf_err hf_result_set(hf_run *run, const void *bytes, size_t len, bool is_json);

/* The job is done. True: it is kept for run->delay_ms, and run->words are what is kept
 * (docs/keys.md). False: it is not, or there is no memory for that. */
bool hf_result_keep(hf_run *run);

#endif
