/* past.h - the history of each queue: what ended in each minute, by type, on its way to
 * Redis. Belongs to the loop.
 *
 * A minute is open while it lasts, on Redis's clock as this worker knows it. A few
 * seconds after its end it is sent, HF_PAST_PARTS types in each request, and one request
 * at a time for each Redis. After ten quiet minutes what ends is sent within a few
 * seconds. Each request has a number, so one that comes twice counts once. While Redis is
 * away up to ten minutes are kept, and 5 s those of a queue that a reload has removed;
 * older ones are dropped, and counted. */
#ifndef HF_WORKER_PAST_H
#define HF_WORKER_PAST_H

#include "worker/run/run.h"

/* How an attempt ended, for the history: bits. */
enum { HF_PAST_DONE = 1, HF_PAST_FAILED = 2, HF_PAST_DIED = 4 };

HF_MUSTCHECK hf_err hf_past_new(hf_worker *w);
void hf_past_free(hf_worker *w);
void hf_past_open(hf_worker *w); /* its timer, on the loop; and closes it */
void hf_past_close(hf_worker *w);

void hf_past_note(const hf_run *run,
                  unsigned how);                  /* how 0: it is no end of an attempt */
void hf_past_buried(hf_served *served, size_t n); /* jobs died in Redis, by a claim */

/* Sends what is due, before the loop sleeps, unless a claim leaves with it. */
void hf_past_turn(hf_worker *w, bool claimed);
/* Queues may have been removed: theirs is sent at once. */
void hf_past_reloaded(hf_worker *w);
/* Sends all that is left, while the worker ends: all queues at once, because there is not
 * much time. `cb` comes once for each queue that has something, when Redis has it or does
 * not take it; returns how many these are. */
size_t hf_past_goodbye(hf_worker *w, hf_answer_cb cb, void *arg);

#endif
