/* runs.h - what this worker tells about runs while a viewer watches: which have ended,
 * which go on. Belongs to the loop.
 *
 * Each heartbeat learns whether a viewer watches. Then an entry leaves once a second for
 * each queue that has something to tell. A run is told when it has run for 2 s, again
 * each 10 s, and at its end; shorter runs are counted. An entry that Redis does not take
 * is lost: the picture has a hole, and no job waits for it.
 *
 * A run of 2 s gets a lane, the lowest that is free since before its start, so runs in
 * one lane do not overlap. */
#ifndef HF_WORKER_RUNS_H
#define HF_WORKER_RUNS_H

#include "worker/run/run.h"

HF_MUSTCHECK hf_err hf_runs_new(hf_worker *w);
void hf_runs_free(hf_worker *w);
void hf_runs_open(hf_worker *w); /* its timer, on the loop; and closes it */
void hf_runs_close(hf_worker *w);

/* A heartbeat was answered. */
void hf_runs_watched(hf_worker *w, bool watched);

/* Redis has answered the verdict of a run; one that never started is none. */
void hf_runs_ended(hf_run *run);

/* A second is over: each run that goes on is given to the second one, then the third one
 * sends. */
bool hf_runs_due(const hf_worker *w);
void hf_runs_goes_on(hf_run *run, void *unused);
void hf_runs_send(hf_worker *w);

/* Sends what is left, while the worker ends. `cb` comes once for each queue that gets
 * something, when it has it or does not take it; returns how many these are. */
size_t hf_runs_goodbye(hf_worker *w, hf_answer_cb cb, void *arg);

#endif
