/* pool.c - threads around one queue and one mutex.
 *
 * Idle threads wait together for `more`, all but one: the lookout waits alone for `now`,
 * so that it is known who will come. A job that comes to a pool where nothing runs is
 * handed to the lookout, in the place of the loop's thread, which will sleep in a moment.
 * Whoever takes a job and sees more wakes one other.
 *
 * The lookout can be asked to lead (worker/lead.h): then it does that, and counts neither
 * as idle nor as running until it comes back or runs a job there. */
#include "worker/pool.h"

#include <sched.h>
#include <stdlib.h>

#include "base/base.h"
#include "worker/nearby.h"

struct hf_pool {
    pthread_mutex_t lock;
    pthread_cond_t more, now;
    hf_run_list queue, returned;
    hf_run_list running;
    uint32_t max, n_threads, idle;
    uint32_t allowed;  /* to run at the same time */
    uint32_t starting; /* made, and not yet at their first job */
    bool waking;       /* somebody was woken and has not come yet: one is enough */
    bool watched;      /* there is a lookout */
    bool called;       /* it was woken and has not come yet */
    bool nearby;       /* and is tied to a processor */
    bool asked;        /* to lead; and has not come yet */
    uint32_t leading;  /* those who do, and will be back for jobs */
    void (*lead)(void *arg);
    void *lead_arg;
    bool closing;
    pthread_t lookout;
    long processors;
    pthread_t *threads;
    void (*work)(hf_run *run);
    void (*on_returned)(void *arg);
    void *arg;
};

/* Who is to be woken when the lock is free, for that is what it needs next. */
typedef enum call { NOBODY, ANYBODY, LOOKOUT } call;

/* Under the lock. */
static bool can_start(const hf_pool *pool)
{
    return pool->queue.head != NULL && pool->running.n < pool->allowed;
}

/* Under the lock: who shall take the next job? Nobody, if somebody is on the way. */
static call choose(hf_pool *pool)
{
    if (!can_start(pool) || pool->idle == 0 || pool->waking)
        return NOBODY;
    pool->waking = true;
    if (!pool->watched || (pool->idle > 1 && pool->running.n + pool->queue.n > 1))
        return ANYBODY;
    pool->called = true;
    return LOOKOUT;
}

static void wake(hf_pool *pool, call who)
{
    if (who != NOBODY)
        pthread_cond_signal(who == LOOKOUT ? &pool->now : &pool->more);
}

/* Under the lock, which it gives up meanwhile. */
static void go_and_lead(hf_pool *pool)
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
static void look_out(hf_pool *pool)
{
    pool->watched = true;
    pool->lookout = pthread_self();
    while (!pool->called && !pool->closing)
        pthread_cond_wait(&pool->now, &pool->lock);
    if (pool->nearby)
        hf_nearby_end();
    pool->watched = pool->called = pool->nearby = false;
    if (pool->asked && !pool->closing)
        go_and_lead(pool);
}

/* Under the lock: the next job, or NULL when the pool is closed. */
static hf_run *next_run(hf_pool *pool)
{
    while (!can_start(pool) && !pool->closing) {
        pool->idle++;
        if (pool->watched)
            pthread_cond_wait(&pool->more, &pool->lock);
        else
            look_out(pool);
        pool->idle--;
        pool->waking = false;
    }
    return pool->closing ? NULL : hf_run_pop(&pool->queue);
}

/* Under the lock, which it gives up meanwhile. True: before, nothing was to be collected.
 */
static bool work_on(hf_pool *pool, hf_run *run)
{
    hf_run_push(&pool->running, run);
    call next = choose(pool);
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
    hf_pool *pool = arg;
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

hf_err hf_pool_new(hf_pool **out, uint32_t threads, void (*work)(hf_run *run),
                   void (*returned)(void *arg), void *arg)
{
    hf_pool *pool = calloc(1, sizeof *pool);
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
    pool->processors = hf_nearby_processors();
    pool->max = pool->allowed = threads;
    pool->work = work;
    pool->on_returned = returned;
    pool->arg = arg;
    *out = pool;
    return HF_OK;
}

/* Under the lock: as many as there are jobs to start. That one cannot be made now is no
 * harm: the others take its job, and it is tried again with the next. */
static void add_threads(hf_pool *pool)
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
static void append(hf_pool *pool, hf_run_list *list)
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

void hf_pool_push(hf_pool *pool, hf_run_list *list)
{
    if (list->head == NULL)
        return;
    pthread_mutex_lock(&pool->lock);
    append(pool, list);
    call next = choose(pool);
    bool alone = pool->running.n + pool->queue.n == 1;
    bool nearby =
        next == LOOKOUT && alone && hf_nearby_begin(pool->lookout, pool->processors);
    pool->nearby = pool->nearby || nearby;
    add_threads(pool);
    pthread_mutex_unlock(&pool->lock);
    wake(pool, next);
    if (nearby)
        sched_yield(); /* it is in our place */
}

bool hf_pool_offer(hf_pool *pool, void (*lead)(void *arg), void *arg)
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
    wake(pool, free ? LOOKOUT : NOBODY);
    return free;
}

void hf_pool_leave(hf_pool *pool, hf_run_list *list)
{
    pthread_mutex_lock(&pool->lock);
    append(pool, list);
    pthread_mutex_unlock(&pool->lock);
}

void hf_pool_run_here(hf_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    if (can_start(pool)) {
        pool->leading--; /* it may stay away for long */
        (void)work_on(pool, hf_run_pop(&pool->queue));
        pool->leading++;
    }
    pthread_mutex_unlock(&pool->lock);
}

void hf_pool_allow(hf_pool *pool, uint32_t n)
{
    pthread_mutex_lock(&pool->lock);
    pool->allowed = n;
    call next = choose(pool);
    pthread_mutex_unlock(&pool->lock);
    wake(pool, next);
}

void hf_pool_collect(hf_pool *pool, hf_run_list *out)
{
    pthread_mutex_lock(&pool->lock);
    *out = pool->returned;
    pool->returned = (hf_run_list){.n = 0};
    pthread_mutex_unlock(&pool->lock);
}

void hf_pool_take_back(hf_pool *pool, uint64_t claimed_before_ns, hf_run_list *out)
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

size_t hf_pool_queued(hf_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    size_t n = pool->queue.n;
    pthread_mutex_unlock(&pool->lock);
    return n;
}

void hf_pool_running(hf_pool *pool, void (*fn)(hf_run *run, void *arg), void *arg)
{
    pthread_mutex_lock(&pool->lock);
    for (hf_run *run = pool->running.head; run != NULL; run = run->next)
        fn(run, arg);
    pthread_mutex_unlock(&pool->lock);
}

void hf_pool_join(hf_pool *pool)
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

void hf_pool_free(hf_pool *pool)
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
