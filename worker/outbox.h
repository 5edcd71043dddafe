/* outbox.h - the end of a held job, and its way to Redis. Belongs to
 * the loop. */
#ifndef HF_WORKER_OUTBOX_H
#define HF_WORKER_OUTBOX_H

#include "worker/run/run.h"

HF_MUSTCHECK hf_err hf_outbox_open(hf_worker *w);
void hf_outbox_close(hf_worker *w);

/* Each of these ends the job here: its verdict is sent until Redis has answered it. */
void hf_outbox_finish(hf_run *run);  /* its handler has returned */
void hf_outbox_release(hf_run *run); /* back to its old place */
void hf_outbox_cancel(hf_run *run);  /* given back, where Redis ends it */
/* Back for later with its text, not counted as an attempt. */
void hf_outbox_put_back(hf_run *run, int64_t delay_ms);
void hf_outbox_unreadable(hf_run *run); /* dead: its record cannot be read */
void hf_outbox_no_handler(hf_run *run); /* back for later, or dead after an hour */

bool hf_outbox_flush(hf_worker *w);  /* true: some have left */
void hf_outbox_forget(hf_worker *w); /* what could not be sent: the leases end */

#endif
