/* leader.h - which thread turns the worker's loop.
 *
 * Handing a job to another thread takes longer than all other work between the answer to
 * a claim and the handler's start. So while a worker has nothing to do and its handlers
 * are short, a thread of the handlers turns the loop, and itself runs a job that arrives
 * alone. The loop, and everything that belongs to its thread, is handed over; two threads
 * never use it at once:
 *
 *   caller    the thread of hf_worker_run(). It turns the loop while there is much to do,
 *             at the start and at the end. It runs no handler, because it must take over
 *             when a handler does not return.
 *   leader    the thread of the handlers that turns the loop meanwhile. Before it calls a
 *             handler it sets the caller's wakeup timer. If the handler has not returned
 *             when that fires, the loop is the caller's, and the leader becomes a
 *             thread of the handlers like any other.
 *
 * Not in a worker with programs: a program is tied to the thread that started it. */
#ifndef HF_WORKER_RUNNER_LEADER_H
#define HF_WORKER_RUNNER_LEADER_H

#include <stdbool.h>

#include "worker/worker.h"

/* `after` is called after each handler that the leader has run, on the thread that has
 * the loop. It should send the job's end at once: a whole round of the loop would delay
 * the next job. */
HF_MUSTCHECK hf_err hf_leader_open(hf_worker *w, void (*after)(hf_worker *w));
void hf_leader_close(hf_worker *w); /* when no thread of the handlers is left */

/* Turns the loop, or lets it be turned, until nothing is left on it. */
void hf_leader_run(hf_worker *w);

/* A job may come soon. To set the wakeup timer takes longer than all else that is done
 * before its handler starts, and can be done while Redis is at work. */
void hf_leader_expect(hf_worker *w);

/* True: the list had one job, which is left in the queue for this thread, and now the
 * rest of the turn has to wait. */
bool hf_leader_keep_one(hf_worker *w, hf_run_list *list);

/* At the end of a turn: whether another thread turns the loop from now on. idle: the
 * worker holds no job, and waits for one. */
void hf_leader_turned(hf_worker *w, bool idle);

#endif
