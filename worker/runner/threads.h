/* threads.h - the threads that run C handlers.
 *
 * Not libuv's pool: that one has four threads, belongs to the whole process and resolves
 * names. Threads are started when they are needed, up to the worker's concurrency. A
 * thread that takes a job and sees more wakes one other: the number of running threads
 * follows the work. */
#ifndef HF_WORKER_RUNNER_THREADS_H
#define HF_WORKER_RUNNER_THREADS_H

#include "worker/run/run.h"

typedef struct hf_threads hf_threads;

/* `work` runs one job; `returned` is called from one of the threads when there is
 * something to collect and there was nothing before. */
HF_MUSTCHECK hf_err hf_threads_new(hf_threads **out, uint32_t threads,
                                   void (*work)(hf_run *run), void (*returned)(void *arg),
                                   void *arg);

/* Queues the whole list (it is empty afterwards), in order. */
void hf_threads_push(hf_threads *pool, hf_run_list *list);

/* Lets an idle thread call `lead`. The call may take long; until it returns, that thread
 * takes no jobs from the pool. False: no thread is waiting. */
bool hf_threads_offer(hf_threads *pool, void (*lead)(void *arg), void *arg);

/* For `lead`. The first queues a non-empty list and wakes no thread, since its own thread
 * will soon call the second. That runs the first job of the queue, if one may be started,
 * and does not call `returned`. */
void hf_threads_leave(hf_threads *pool, hf_run_list *list);
void hf_threads_run_here(hf_threads *pool);

/* How many jobs may run at the same time, at most as many as there are threads. Running
 * jobs continue. */
void hf_threads_allow(hf_threads *pool, uint32_t n);

/* All that have returned, in order of their return. */
void hf_threads_collect(hf_threads *pool, hf_run_list *out);

/* Takes back those that have not started and were claimed before `claimed_ns`. */
void hf_threads_take_back(hf_threads *pool, uint64_t claimed_before_ns, hf_run_list *out);

/* The number queued and not yet started. */
size_t hf_threads_queued(hf_threads *pool);

/* Calls fn for each job that a thread has now, under the pool's lock. */
void hf_threads_running(hf_threads *pool, void (*fn)(hf_run *run, void *arg), void *arg);

/* Lets each thread finish its job, and waits for them. Queued jobs are not run. */
void hf_threads_join(hf_threads *pool);

/* After hf_threads_join(), or before a job was pushed. NULL is fine. */
void hf_threads_free(hf_threads *pool);

#endif
