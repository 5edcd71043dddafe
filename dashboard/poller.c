/* poller.c - see poller.h. */
#include "dashboard/poller.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "base/clock.h"

enum {
    PER_SECOND = 100,
    ANSWER_MS = 3000,
    AWAY_MS = 1000, /* for this long a Redis that was away is not asked again */
    SECOND_MS = 1000
};

typedef struct task_list {
    hf_poll_task *first, *last;
    size_t n;
} task_list;

struct hf_poller {
    hf_poller_opts opts;
    hf_reader reader;
    uv_async_t async;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t more;
    task_list waiting, ended; /* behind the mutex, as `stop` */
    bool stop;
    uint64_t full_ns; /* when the bucket of tokens is full */
};

static void put(task_list *list, hf_poll_task *task)
{
    task->next = NULL;
    *(list->last == NULL ? &list->first : &list->last->next) = task;
    list->last = task;
    list->n++;
}

static hf_poll_task *take(task_list *list)
{
    hf_poll_task *task = list->first;
    if (task == NULL)
        return NULL;
    list->first = task->next;
    list->last = list->first == NULL ? NULL : list->last;
    list->n--;
    return task;
}

/* ---- the reader ---- */

static bool is_away(hf_err err)
{
    return err == HF_CONN || err == HF_TIMEOUT || err == HF_AUTH || err == HF_LOADING ||
           err == HF_UNSUPPORTED || err == HF_BUSY_SCRIPT;
}

hf_err hf_reader_note(hf_reader *r, hf_err err)
{
    if (is_away(err)) {
        r->fault = err;
        r->fault_ns = hf_boot_ns();
    } else {
        r->fault = HF_OK;
    }
    return err;
}

static void open_locks(hf_reader *r)
{
    const hf_lock_client_opts opts = {HF_LOCK_CLIENT_OPTS_INIT,
                                      .server = r->opts->server};
    if (hf_lock_client_open(&r->locks, &opts, NULL) != HF_OK)
        r->locks = NULL;
}

static void read_clock(hf_reader *r)
{
    hf_round_trip trip = {HF_ROUND_TRIP_INIT};
    if (hf_admin_round_trip(r->admin, &trip, NULL) == HF_OK)
        r->ahead_ms = trip.ahead_us / 1000;
}

hf_err hf_reader_open(hf_reader *r)
{
    hf_server_opts server = *r->opts->server;
    const hf_admin_opts opts = {HF_ADMIN_OPTS_INIT, .server = &server,
                                .deadline_ms = ANSWER_MS};
    if (r->fault != HF_OK && hf_boot_ns() - r->fault_ns < AWAY_MS * HF_MS_NS)
        return r->fault;
    if (r->admin != NULL)
        return HF_OK;
    server.connect_timeout_ms = ANSWER_MS;
    hf_err err = hf_reader_note(r, hf_admin_open(&r->admin, &opts, r->detail));
    if (err != HF_OK)
        return err;
    read_clock(r);
    open_locks(r);
    return HF_OK;
}

int64_t hf_reader_now_ms(const hf_reader *r)
{
    return hf_wall_ms() + r->ahead_ms;
}

static void note_time(hf_reader *r, uint64_t took_ns)
{
    size_t i = 0;
    for (uint64_t ms = 1; i + 1 < HF_POLLER_REQUESTS && took_ns > ms * HF_MS_NS; ms *= 2)
        i++;
    r->took[i]++;
    r->took_us += took_ns / 1000;
    r->reads++;
}

/* ---- the thread ---- */

/* A bucket of PER_SECOND tokens. The time at which the next one is there; 0: now. */
static uint64_t next_token(hf_poller *p)
{
    const uint64_t now = hf_boot_ns(), second = SECOND_MS * HF_MS_NS;
    if (p->full_ns < now)
        p->full_ns = now;
    if (p->full_ns - now > second - second / PER_SECOND)
        return p->full_ns - (second - second / PER_SECOND);
    p->full_ns += second / PER_SECOND;
    return 0;
}

static void wait_until(hf_poller *p, uint64_t at_ns)
{
    struct timespec until;
    const uint64_t now = hf_boot_ns();
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    uint64_t ns = (uint64_t)until.tv_nsec + (at_ns > now ? at_ns - now : 0);
    until.tv_sec += (time_t)(ns / (SECOND_MS * HF_MS_NS));
    until.tv_nsec = (long)(ns % (SECOND_MS * HF_MS_NS));
    (void)pthread_cond_timedwait(&p->more, &p->mutex, &until);
}

/* With the mutex. NULL: it stops. */
static hf_poll_task *next_task(hf_poller *p)
{
    while (!p->stop) {
        uint64_t token_ns;
        if (p->waiting.first == NULL)
            (void)pthread_cond_wait(&p->more, &p->mutex);
        else if ((token_ns = next_token(p)) != 0)
            wait_until(p, token_ns);
        else
            return take(&p->waiting);
    }
    return NULL;
}

static void *work(void *arg)
{
    hf_poller *p = arg;
    hf_poll_task *task;
    (void)pthread_mutex_lock(&p->mutex);
    while ((task = next_task(p)) != NULL) {
        (void)pthread_mutex_unlock(&p->mutex);
        const uint64_t began = hf_boot_ns();
        p->reader.detail[0] = '\0';
        task->run(task, &p->reader);
        note_time(&p->reader, hf_boot_ns() - began);
        (void)pthread_mutex_lock(&p->mutex);
        put(&p->ended, task);
        (void)uv_async_send(&p->async);
    }
    (void)pthread_mutex_unlock(&p->mutex);
    return NULL;
}

static void on_async(uv_async_t *async)
{
    hf_poller *p = async->data;
    (void)pthread_mutex_lock(&p->mutex);
    hf_poll_task *task = p->ended.first;
    p->ended = (task_list){NULL, NULL, 0};
    (void)pthread_mutex_unlock(&p->mutex);
    while (task != NULL) {
        hf_poll_task *next = task->next;
        task->done(task, false);
        task = next;
    }
}

bool hf_poller_submit(hf_poller *p, hf_poll_task *task)
{
    (void)pthread_mutex_lock(&p->mutex);
    const bool room = p->waiting.n < HF_POLLER_TASKS;
    if (room) {
        put(&p->waiting, task);
        (void)pthread_cond_signal(&p->more);
    }
    (void)pthread_mutex_unlock(&p->mutex);
    return room;
}

/* ---- open and close ---- */

static void on_closed(uv_handle_t *handle)
{
    hf_poller *p = handle->data;
    (void)pthread_cond_destroy(&p->more);
    (void)pthread_mutex_destroy(&p->mutex);
    free(p);
}

static bool make_locks(hf_poller *p)
{
    pthread_condattr_t attr;
    if (pthread_mutex_init(&p->mutex, NULL) != 0)
        return false;
    bool made = pthread_condattr_init(&attr) == 0;
    if (made) {
        (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
        made = pthread_cond_init(&p->more, &attr) == 0;
        (void)pthread_condattr_destroy(&attr);
    }
    if (!made)
        (void)pthread_mutex_destroy(&p->mutex);
    return made;
}

hf_err hf_poller_open(hf_poller **out, uv_loop_t *loop, const hf_poller_opts *opts)
{
    hf_poller *p = calloc(1, sizeof *p);
    if (p == NULL)
        return HF_NOMEM;
    p->opts = *opts;
    p->reader.opts = &p->opts;
    p->async.data = p;
    if (!make_locks(p)) {
        free(p);
        return HF_SYSTEM;
    }
    if (uv_async_init(loop, &p->async, on_async) != 0) {
        on_closed((uv_handle_t *)&p->async);
        return HF_SYSTEM;
    }
    if (pthread_create(&p->thread, NULL, work, p) != 0) {
        uv_close((uv_handle_t *)&p->async, on_closed);
        return HF_SYSTEM;
    }
    *out = p;
    return HF_OK;
}

void hf_poller_close(hf_poller *p)
{
    if (p == NULL)
        return;
    (void)pthread_mutex_lock(&p->mutex);
    p->stop = true;
    (void)pthread_cond_signal(&p->more);
    (void)pthread_mutex_unlock(&p->mutex);
    (void)pthread_join(p->thread, NULL);
    on_async(&p->async);
    for (hf_poll_task *task; (task = take(&p->waiting)) != NULL;)
        task->done(task, true);
    if (p->reader.overview != NULL)
        p->reader.free_overview(p->reader.overview);
    if (p->reader.checkup != NULL)
        p->reader.free_checkup(p->reader.checkup);
    if (p->reader.timeline != NULL)
        p->reader.free_timeline(p->reader.timeline);
    if (p->reader.redis != NULL)
        p->reader.free_redis(p->reader.redis);
    hf_lock_client_close(p->reader.locks, NULL, NULL);
    hf_admin_close(p->reader.admin);
    uv_close((uv_handle_t *)&p->async, on_closed);
}
