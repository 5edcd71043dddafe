/* pool.h - the threads that run C handlers.
 *
 * Not libuv's pool: that one has four threads, belongs to the whole process and resolves
 * names. Threads are started when they are needed, up to the worker's concurrency. A
 * thread that takes a job and sees more wakes one other: the number of running threads
 * follows the work. */
#ifndef HF_WORKER_POOL_H
#define HF_WORKER_POOL_H

#include "worker/run.h"

typedef struct hf_pool hf_pool;

/* `work` runs one job; `returned` is called from a pool thread when there is something to
 * collect and there was nothing before. */
HF_MUSTCHECK hf_err hf_pool_new(hf_pool **out, uint32_t threads,
                                void (*work)(hf_run *run), void (*returned)(void *arg),
                                void *arg);

/* Queues the whole list (it is empty afterwards), in order. */
void hf_pool_push(hf_pool *pool, hf_run_list *list);

/* Lets an idle thread call `lead`. The call may take long; until it returns, that thread
 * takes no jobs from the pool. False: no thread is waiting. */
bool hf_pool_offer(hf_pool *pool, void (*lead)(void *arg), void *arg);

/* For `lead`. The first queues a non-empty list and wakes no thread, since its own thread
 * will soon call the second. That runs the first job of the queue, if one may be started,
 * and does not call `returned`. */
void hf_pool_leave(hf_pool *pool, hf_run_list *list);
void hf_pool_run_here(hf_pool *pool);

/* How many jobs may run at the same time, at most as many as there are threads. Running
 * jobs continue. */
void hf_pool_allow(hf_pool *pool, uint32_t n);

/* All that have returned, in order of their return. */
void hf_pool_collect(hf_pool *pool, hf_run_list *out);

/* Takes back those that have not started and were claimed before `claimed_ns`. */
void hf_pool_take_back(hf_pool *pool, uint64_t claimed_before_ns, hf_run_list *out);

/* The number queued and not yet started. */
size_t hf_pool_queued(hf_pool *pool);

/* Calls fn for each job that a thread has now, under the pool's lock. */
void hf_pool_running(hf_pool *pool, void (*fn)(hf_run *run, void *arg), void *arg);

/* Lets each thread finish its job, and waits for them. Queued jobs are not run. */
void hf_pool_join(hf_pool *pool);

/* After hf_pool_join(), or before a job was pushed. NULL is fine. */
void hf_pool_free(hf_pool *pool);

#endif
