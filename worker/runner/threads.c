/* threads.c - threads around one queue and one mutex.
 *
 * Idle threads wait together for `more`, except one: the standby thread waits alone for
 * `now`, and it is known which thread a wake-up reaches. A job that arrives while nothing
 * runs goes to the standby thread, on the processor of the loop's thread, which will
 * sleep in a moment. A thread that takes a job and sees more wakes one other.
 *
 * The standby thread can be asked to lead (worker/runner/leader.h): then it does that,
 * and counts neither as idle nor as running until it comes back or runs a job there. */
#define _GNU_SOURCE /* for the processors of threads */
#include "worker/runner/threads.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "worker/run/run.h"

/* ---- on which processor a thread wakes ----
 *
 * A thread that is woken goes to an idle processor if there is one, which has to wake up
 * first. On a virtual machine this takes longer than all other work between the answer to
 * a claim and the handler's start. A thread that wakes another one and will sleep soon
 * can place it on its own processor instead. Only a thread that may run on all processors
 * is tied, for some microseconds, and may then run on all of them again: there is nothing
 * to remember, and an affinity that the user has set stays. */

static long count_processors(void)
{
    return sysconf(_SC_NPROCESSORS_ONLN);
}

/* Before the standby thread is woken: has it woken on the processor of the caller. False:
 * it is left alone, because there is one processor, its processors were chosen by the
 * user, or the system does not let us. */
static bool tie(pthread_t sleeper, long processors)
{
    cpu_set_t set;
    int here = sched_getcpu();
    if (processors < 2 || here < 0 || here >= CPU_SETSIZE ||
        pthread_getaffinity_np(sleeper, sizeof set, &set) != 0 ||
        CPU_COUNT(&set) < processors)
        return false;
    CPU_ZERO(&set);
    CPU_SET((unsigned)here, &set);
    return pthread_setaffinity_np(sleeper, sizeof set, &set) == 0;
}

/* As soon as it is awake, before it does anything else: threads and processes that it
 * starts would be tied as well. */
static void untie(void)
{
    cpu_set_t all;
    memset(&all, 0xFF, sizeof all);
    (void)pthread_setaffinity_np(pthread_self(), sizeof all, &all);
}

/* ---- the pool ---- */

struct hf_threads {
    pthread_mutex_t lock;
    pthread_cond_t more, now;
    hf_run_list queue, returned;
    hf_run_list running;
    uint32_t max, n_threads, idle;
    uint32_t allowed;  /* to run at the same time */
    uint32_t starting; /* made, and not yet at their first job */
    bool waking;       /* a thread was woken and has not come yet: one is enough */
    bool watched;      /* there is a standby thread */
    bool called;       /* it was woken and has not come yet */
    bool tied;         /* and is tied to a processor */
    bool asked;        /* to lead; and has not come yet */
    uint32_t leading;  /* the threads that do, and will come back for jobs */
    void (*lead)(void *arg);
    void *lead_arg;
    bool closing;
    pthread_t standby;
    long processors;
    pthread_t *threads;
    void (*work)(hf_run *run);
    void (*on_returned)(void *arg);
    void *arg;
};

/* The thread to wake once the lock is free, because it takes the lock next. */
typedef enum wakeup { NO_THREAD, ANY_THREAD, STANDBY } wakeup;

/* Under the lock. */
static bool can_start(const hf_threads *pool)
{
    return pool->queue.head != NULL && pool->running.n < pool->allowed;
}

/* Under the lock: which thread takes the next job? None, if one is on its way. */
static wakeup choose(hf_threads *pool)
{
    if (!can_start(pool) || pool->idle == 0 || pool->waking)
        return NO_THREAD;
    pool->waking = true;
    if (!pool->watched || (pool->idle > 1 && pool->running.n + pool->queue.n > 1))
        return ANY_THREAD;
    pool->called = true;
    return STANDBY;
}

static void wake(hf_threads *pool, wakeup who)
{
    if (who != NO_THREAD)
        pthread_cond_signal(who == STANDBY ? &pool->now : &pool->more);
}

/* Under the lock, which it gives up meanwhile. */
static void go_and_lead(hf_threads *pool)
{
    pool->asked = pool->waking = false;
    pool->idle--;
    pool->leading++;
    pthread_mutex_unlock(&pool->lock);
    pool->lead(pool->lead_arg);
    pthread_mutex_lock(&pool->lock);
    pool->leading--;
    pool->idle++;
}

/* Under the lock. */
static void stand_by(hf_threads *pool)
{
    pool->watched = true;
    pool->standby = pthread_self();
    while (!pool->called && !pool->closing)
        pthread_cond_wait(&pool->now, &pool->lock);
    if (pool->tied)
        untie();
    pool->watched = pool->called = pool->tied = false;
    if (pool->asked && !pool->closing)
        go_and_lead(pool);
}

/* Under the lock: the next job, or NULL when the pool is closed. */
static hf_run *next_run(hf_threads *pool)
{
    while (!can_start(pool) && !pool->closing) {
        pool->idle++;
        if (pool->watched)
            pthread_cond_wait(&pool->more, &pool->lock);
        else
            stand_by(pool);
        pool->idle--;
        pool->waking = false;
    }
    return pool->closing ? NULL : hf_run_pop(&pool->queue);
}

/* Under the lock, which it gives up meanwhile. True: before, nothing was to be collected.
 */
static bool work_on(hf_threads *pool, hf_run *run)
{
    hf_run_push(&pool->running, run);
    wakeup next = choose(pool);
    pthread_mutex_unlock(&pool->lock);
    wake(pool, next);
    pool->work(run);
    pthread_mutex_lock(&pool->lock);
    hf_run_remove(&pool->running, run);
    hf_run_push(&pool->returned, run);
    return pool->returned.n == 1;
}

static void *thread_main(void *arg)
{
    hf_threads *pool = arg;
    pthread_mutex_lock(&pool->lock);
    pool->starting--;
    for (;;) {
        hf_run *run = next_run(pool);
        if (run == NULL)
            break;
        if (work_on(pool, run))
            pool->on_returned(pool->arg);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

hf_err hf_threads_new(hf_threads **out, uint32_t threads, void (*work)(hf_run *run),
                      void (*returned)(void *arg), void *arg)
{
    hf_threads *pool = calloc(1, sizeof *pool);
    if (pool == NULL)
        return HF_NOMEM;
    pool->threads = calloc(threads, sizeof *pool->threads);
    if (pool->threads == NULL) {
        free(pool);
        return HF_NOMEM;
    }
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->more, NULL);
    pthread_cond_init(&pool->now, NULL);
    pool->processors = count_processors();
    pool->max = pool->allowed = threads;
    pool->work = work;
    pool->on_returned = returned;
    pool->arg = arg;
    *out = pool;
    return HF_OK;
}

/* Under the lock: one for each job to start. A failure does no harm: the other threads
 * take the job, and the next job tries again. */
static void add_threads(hf_threads *pool)
{
    while (pool->n_threads < pool->max &&
           pool->idle + pool->starting + pool->leading < pool->queue.n) {
        if (pthread_create(&pool->threads[pool->n_threads], NULL, thread_main, pool) != 0)
            return;
        pool->n_threads++;
        pool->starting++;
    }
}

/* Under the lock; the list is not empty. */
static void append(hf_threads *pool, hf_run_list *list)
{
    if (pool->queue.tail != NULL) {
        pool->queue.tail->next = list->head;
        list->head->prev = pool->queue.tail;
    } else {
        pool->queue.head = list->head;
    }
    pool->queue.tail = list->tail;
    pool->queue.n += list->n;
    *list = (hf_run_list){.n = 0};
}

void hf_threads_push(hf_threads *pool, hf_run_list *list)
{
    if (list->head == NULL)
        return;
    pthread_mutex_lock(&pool->lock);
    append(pool, list);
    wakeup next = choose(pool);
    bool alone = pool->running.n + pool->queue.n == 1;
    bool tied = next == STANDBY && alone && tie(pool->standby, pool->processors);
    pool->tied = pool->tied || tied;
    add_threads(pool);
    pthread_mutex_unlock(&pool->lock);
    wake(pool, next);
    if (tied)
        sched_yield(); /* it is in our place */
}

bool hf_threads_offer(hf_threads *pool, void (*lead)(void *arg), void *arg)
{
    pthread_mutex_lock(&pool->lock);
    bool free = pool->watched && !pool->called && pool->queue.head == NULL &&
                pool->running.n < pool->allowed;
    if (free) {
        pool->asked = pool->called = true;
        pool->lead = lead;
        pool->lead_arg = arg;
    }
    pthread_mutex_unlock(&pool->lock);
    wake(pool, free ? STANDBY : NO_THREAD);
    return free;
}

void hf_threads_leave(hf_threads *pool, hf_run_list *list)
{
    pthread_mutex_lock(&pool->lock);
    append(pool, list);
    pthread_mutex_unlock(&pool->lock);
}

void hf_threads_run_here(hf_threads *pool)
{
    pthread_mutex_lock(&pool->lock);
    if (can_start(pool)) {
        pool->leading--; /* it may stay away for long */
        (void)work_on(pool, hf_run_pop(&pool->queue));
        pool->leading++;
    }
    pthread_mutex_unlock(&pool->lock);
}

void hf_threads_allow(hf_threads *pool, uint32_t n)
{
    pthread_mutex_lock(&pool->lock);
    pool->allowed = n;
    wakeup next = choose(pool);
    pthread_mutex_unlock(&pool->lock);
    wake(pool, next);
}

void hf_threads_collect(hf_threads *pool, hf_run_list *out)
{
    pthread_mutex_lock(&pool->lock);
    *out = pool->returned;
    pool->returned = (hf_run_list){.n = 0};
    pthread_mutex_unlock(&pool->lock);
}

void hf_threads_take_back(hf_threads *pool, uint64_t claimed_before_ns, hf_run_list *out)
{
    *out = (hf_run_list){.n = 0};
    pthread_mutex_lock(&pool->lock);
    for (hf_run *run = pool->queue.head, *next; run != NULL; run = next) {
        next = run->next;
        if (run->claimed_ns < claimed_before_ns) {
            hf_run_remove(&pool->queue, run);
            hf_run_push(out, run);
        }
    }
    pthread_mutex_unlock(&pool->lock);
}

size_t hf_threads_queued(hf_threads *pool)
{
    pthread_mutex_lock(&pool->lock);
    size_t n = pool->queue.n;
    pthread_mutex_unlock(&pool->lock);
    return n;
}

void hf_threads_running(hf_threads *pool, void (*fn)(hf_run *run, void *arg), void *arg)
{
    pthread_mutex_lock(&pool->lock);
    for (hf_run *run = pool->running.head; run != NULL; run = run->next)
        fn(run, arg);
    pthread_mutex_unlock(&pool->lock);
}

void hf_threads_join(hf_threads *pool)
{
    pthread_mutex_lock(&pool->lock);
    pool->closing = true;
    pthread_cond_broadcast(&pool->more);
    pthread_cond_broadcast(&pool->now);
    pthread_mutex_unlock(&pool->lock);
    for (uint32_t i = 0; i < pool->n_threads; i++)
        pthread_join(pool->threads[i], NULL);
    pool->n_threads = 0;
}

void hf_threads_free(hf_threads *pool)
{
    if (pool == NULL)
        return;
    HF_ASSERT(pool->n_threads == 0);
    pthread_mutex_destroy(&pool->lock);
    pthread_cond_destroy(&pool->more);
    pthread_cond_destroy(&pool->now);
    free(pool->threads);
    free(pool);
}
