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
/* Its process died without a verdict, and this worker did not end it: no attempt, and one
 * crash more. `text` says how the process ended. */
void hf_outbox_crashed(hf_run *run, const char *text);
void hf_outbox_cancel(hf_run *run); /* given back, where Redis ends it */
/* Back to its old place: its process was ended because of the job `id` in it. No attempt;
 * after three times in a row it runs alone. */
void hf_outbox_neighbour(hf_run *run, const char *id);
/* Back for later with its text, not counted as an attempt: it cannot run alone here. */
void hf_outbox_put_back(hf_run *run, int64_t delay_ms);
/* It never started, because what would run it is down, as `text` says. No attempt, no
 * refusal. */
void hf_outbox_back_off(hf_run *run, int64_t delay_ms, const char *text);
void hf_outbox_unreadable(hf_run *run); /* dead: its record cannot be read */
void hf_outbox_no_handler(hf_run *run); /* back for others, or dead after an hour */

/* More jobs will end within the next millisecond: what is ended now may leave with them.
 * One request for many costs Redis and this worker a fraction of one for each. */
void hf_outbox_gather(hf_worker *w);
bool hf_outbox_gathers(const hf_worker *w); /* flush it again in a millisecond */
bool hf_outbox_flush(hf_worker *w);         /* true: some have left */
void hf_outbox_forget(hf_worker *w);        /* what could not be sent: the leases end */

#endif
