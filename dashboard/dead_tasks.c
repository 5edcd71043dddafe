/* dead_tasks.c - see dead_tasks.h. */
#include "dashboard/dead_tasks.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "base/clock.h"

enum {
    AGAIN_MS = 1000,      /* between two looks at a Redis that is away */
    AWAY_MAX_MS = 600000, /* for so long it is waited for */
    SLICES_A_SECOND = 4,
    SECOND_MS = 1000
};

typedef struct task {
    hf_dead_tasks *tasks;
    pthread_t thread;
    hf_task_view view; /* behind the mutex, but for its id and its order */
    bool stop;         /* the same */
    uint64_t number;   /* the place in the order of their starts */
    /* Of its thread. */
    hf_admin *admin;
    size_t before;    /* done by earlier calls */
    size_t last;      /* what the call had done at the last slice, */
    uint64_t due_ns;  /* for which it was the time then */
    uint64_t away_ns; /* since when Redis is away; 0: it is not */
} task;

struct hf_dead_tasks {
    hf_dead_tasks_opts opts;
    pthread_mutex_t mutex;
    pthread_cond_t stopped; /* one of them is to stop */
    hf_id_maker ids;
    uint64_t started;
    task *kept[HF_TASKS_KEPT];
};

bool hf_dead_tasks_has_ended(const hf_task_view *v)
{
    return v->state != HF_TASK_RUNNING && v->state != HF_TASK_AWAY;
}

/* ---- the thread of a task ---- */

/* With the mutex. */
static void wait_until(task *t, uint64_t at_ns)
{
    hf_dead_tasks *all = t->tasks;
    for (uint64_t now; !t->stop && (now = hf_boot_ns()) < at_ns;) {
        struct timespec until;
        (void)clock_gettime(CLOCK_MONOTONIC, &until);
        const uint64_t ns = (uint64_t)until.tv_nsec + (at_ns - now);
        until.tv_sec += (time_t)(ns / (SECOND_MS * HF_MS_NS));
        until.tv_nsec = (long)(ns % (SECOND_MS * HF_MS_NS));
        (void)pthread_cond_timedwait(&all->stopped, &all->mutex, &until);
    }
}

/* With the mutex. Time that a slow Redis or a stopped process has cost is not made up
 * for: the rate protects the service behind the jobs. */
static void keep_rate(task *t, size_t done)
{
    const uint64_t now = hf_boot_ns();
    t->due_ns += (done - t->last) * SECOND_MS * HF_MS_NS / t->view.order.rate;
    t->last = done;
    if (t->due_ns < now)
        t->due_ns = now;
    wait_until(t, t->due_ns);
}

/* After each slice: tells how far it is, and waits for the time of the next one. */
static bool on_slice(size_t done, size_t total, void *arg)
{
    task *t = arg;
    (void)total;
    (void)pthread_mutex_lock(&t->tasks->mutex);
    t->view.done = t->before + done;
    t->view.state = HF_TASK_RUNNING;
    t->view.why[0] = '\0';
    t->away_ns = 0;
    if (t->view.order.rate > 0)
        keep_rate(t, done);
    const bool goes_on = !t->stop;
    (void)pthread_mutex_unlock(&t->tasks->mutex);
    return goes_on;
}

static size_t slice_of(const hf_task_order *o)
{
    return o->rate == 0 ? 0 : o->rate < SLICES_A_SECOND ? 1 : o->rate / SLICES_A_SECOND;
}

static hf_err ask(task *t, size_t *n, char *detail)
{
    const hf_task_order *o = &t->view.order;
    const hf_dead_filter filter = {HF_DEAD_FILTER_INIT,
                                   .type = o->type[0] == '\0' ? NULL : o->type,
                                   .error = o->of_error ? o->key : NULL,
                                   .since_ms = o->since_ms,
                                   .until_ms = o->until_ms,
                                   .limit = o->jobs - t->before,
                                   .slice = slice_of(o)};
    const hf_admin_opts opts = {HF_ADMIN_OPTS_INIT, .server = t->tasks->opts.server};
    hf_err err = t->admin != NULL ? HF_OK : hf_admin_open(&t->admin, &opts, detail);
    t->last = 0;
    t->due_ns = hf_boot_ns();
    if (err != HF_OK)
        return err;
    return o->purge
               ? hf_admin_dead_purge(t->admin, o->queue, &filter, on_slice, t, n, detail)
               : hf_admin_dead_retry(t->admin, o->queue, &filter, 0, on_slice, t, n,
                                     detail);
}

/* One call for all that is left. What has died meanwhile is not taken: until_ms. */
static hf_err turn(task *t, char *detail)
{
    enum { RETRY_MOST = 200, PURGE_MOST = 500 }; /* of one request */
    const size_t slice = slice_of(&t->view.order);
    const size_t most = t->view.order.purge ? PURGE_MOST : RETRY_MOST;
    size_t n = 0;
    if (t->before >= t->view.order.jobs)
        return HF_OK;
    hf_err err = ask(t, &n, detail);
    (void)pthread_mutex_lock(&t->tasks->mutex);
    t->before += n;
    t->view.done = t->before;
    if (err == HF_UNSURE)
        t->view.unsure += slice != 0 && slice < most ? slice : most;
    (void)pthread_mutex_unlock(&t->tasks->mutex);
    return err;
}

static bool is_away(hf_err err)
{
    return err == HF_CONN || err == HF_TIMEOUT || err == HF_UNSURE || err == HF_LOADING ||
           err == HF_BUSY_SCRIPT || err == HF_UNSERVED || err == HF_READONLY;
}

/* Whether it goes on after this. */
static bool wait_for_redis(task *t, hf_err err, const char *detail)
{
    const uint64_t now = hf_boot_ns();
    if (!is_away(err))
        return false;
    t->away_ns = t->away_ns == 0 ? now : t->away_ns;
    (void)pthread_mutex_lock(&t->tasks->mutex);
    t->view.state = HF_TASK_AWAY;
    (void)snprintf(t->view.why, sizeof t->view.why, "%s", detail);
    const bool lasts = now - t->away_ns < AWAY_MAX_MS * HF_MS_NS;
    if (lasts)
        wait_until(t, now + AGAIN_MS * HF_MS_NS);
    const bool goes_on = lasts && !t->stop;
    (void)pthread_mutex_unlock(&t->tasks->mutex);
    return goes_on;
}

static void end(task *t, hf_err err, const char *detail)
{
    hf_dead_tasks *all = t->tasks;
    hf_task_view *v = &t->view;
    (void)pthread_mutex_lock(&all->mutex);
    const bool cut = t->stop && (err == HF_OK ? v->done < v->order.jobs : is_away(err));
    v->state = cut ? HF_TASK_STOPPED : err == HF_OK ? HF_TASK_DONE : HF_TASK_FAILED;
    (void)snprintf(v->why, sizeof v->why, "%s",
                   v->state != HF_TASK_FAILED ? ""
                   : *detail != '\0'          ? detail
                                              : hf_err_text(err));
    v->ended_ms = hf_wall_ms();
    const hf_task_view view = *v;
    (void)pthread_mutex_unlock(&all->mutex);
    if (all->opts.ended != NULL)
        all->opts.ended(&view, all->opts.arg);
}

static void *work(void *arg)
{
    task *t = arg;
    char detail[HF_DETAIL_SIZE] = "";
    hf_err err;
    do
        err = turn(t, detail);
    while (wait_for_redis(t, err, detail));
    hf_admin_close(t->admin);
    end(t, err, detail);
    return NULL;
}

/* ---- all of them: with the mutex ---- */

static task *task_of(hf_dead_tasks *all, const char *id)
{
    for (size_t i = 0; i < HF_TASKS_KEPT; i++)
        if (all->kept[i] != NULL && strcmp(all->kept[i]->view.id, id) == 0)
            return all->kept[i];
    return NULL;
}

static size_t running(const hf_dead_tasks *all)
{
    size_t n = 0;
    for (size_t i = 0; i < HF_TASKS_KEPT; i++)
        n +=
            all->kept[i] != NULL && !hf_dead_tasks_has_ended(&all->kept[i]->view) ? 1 : 0;
    return n;
}

/* A free place, or that of the oldest one that has ended. */
static size_t place_for(const hf_dead_tasks *all)
{
    size_t best = HF_TASKS_KEPT;
    for (size_t i = 0; i < HF_TASKS_KEPT; i++) {
        const task *t = all->kept[i];
        if (t == NULL)
            return i;
        if (hf_dead_tasks_has_ended(&t->view) &&
            (best == HF_TASKS_KEPT || t->number < all->kept[best]->number))
            best = i;
    }
    return best;
}

static void forget(task *t)
{
    if (t == NULL)
        return;
    (void)pthread_join(t->thread, NULL);
    free(t);
}

hf_err hf_dead_tasks_start(hf_dead_tasks *all, const hf_task_order *order,
                           char id[HF_NEW_ID_SIZE])
{
    task *new = calloc(1, sizeof *new), *old = NULL;
    hf_err err = new == NULL ? HF_NOMEM : HF_OK;
    (void)pthread_mutex_lock(&all->mutex);
    if (err == HF_OK && running(all) >= HF_TASKS_AT_A_TIME)
        err = HF_BUSY;
    if (err == HF_OK) {
        new->tasks = all;
        new->view = (hf_task_view){.order = *order, .began_ms = hf_wall_ms()};
        new->number = ++all->started;
        hf_id_next(&all->ids, new->view.id);
        memcpy(id, new->view.id, HF_NEW_ID_SIZE);
        if (pthread_create(&new->thread, NULL, work, new) != 0)
            err = HF_SYSTEM;
    }
    if (err == HF_OK) {
        const size_t i = place_for(all);
        old = all->kept[i];
        all->kept[i] = new;
        new = NULL;
    }
    (void)pthread_mutex_unlock(&all->mutex);
    free(new);
    forget(old);
    return err;
}

bool hf_dead_tasks_stop(hf_dead_tasks *all, const char *id)
{
    (void)pthread_mutex_lock(&all->mutex);
    task *t = task_of(all, id);
    if (t != NULL) {
        t->stop = t->view.stopping = true;
        (void)pthread_cond_broadcast(&all->stopped);
    }
    (void)pthread_mutex_unlock(&all->mutex);
    return t != NULL;
}

bool hf_dead_tasks_read(hf_dead_tasks *all, const char *id, hf_task_view *out)
{
    (void)pthread_mutex_lock(&all->mutex);
    const task *t = task_of(all, id);
    if (t != NULL)
        *out = t->view;
    (void)pthread_mutex_unlock(&all->mutex);
    return t != NULL;
}

static int by_start(const void *a, const void *b)
{
    const task *const *x = a, *const *y = b;
    return (*x)->number > (*y)->number ? -1 : 1;
}

size_t hf_dead_tasks_list(hf_dead_tasks *all, hf_task_view out[HF_TASKS_KEPT])
{
    const task *list[HF_TASKS_KEPT];
    size_t n = 0;
    (void)pthread_mutex_lock(&all->mutex);
    for (size_t i = 0; i < HF_TASKS_KEPT; i++)
        if (all->kept[i] != NULL)
            list[n++] = all->kept[i];
    qsort(list, n, sizeof list[0], by_start);
    for (size_t i = 0; i < n; i++)
        out[i] = list[i]->view;
    (void)pthread_mutex_unlock(&all->mutex);
    return n;
}

/* ---- open and close ---- */

static bool make_locks(hf_dead_tasks *all)
{
    pthread_condattr_t attr;
    if (pthread_mutex_init(&all->mutex, NULL) != 0)
        return false;
    bool made = pthread_condattr_init(&attr) == 0;
    if (made) {
        (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
        made = pthread_cond_init(&all->stopped, &attr) == 0;
        (void)pthread_condattr_destroy(&attr);
    }
    if (!made)
        (void)pthread_mutex_destroy(&all->mutex);
    return made;
}

hf_err hf_dead_tasks_open(hf_dead_tasks **out, const hf_dead_tasks_opts *opts)
{
    hf_dead_tasks *all = calloc(1, sizeof *all);
    if (all == NULL)
        return HF_NOMEM;
    all->opts = *opts;
    if (hf_id_maker_init(&all->ids) != HF_OK || !make_locks(all)) {
        free(all);
        return HF_SYSTEM;
    }
    *out = all;
    return HF_OK;
}

void hf_dead_tasks_close(hf_dead_tasks *all)
{
    if (all == NULL)
        return;
    (void)pthread_mutex_lock(&all->mutex);
    for (size_t i = 0; i < HF_TASKS_KEPT; i++)
        if (all->kept[i] != NULL)
            all->kept[i]->stop = true;
    (void)pthread_cond_broadcast(&all->stopped);
    (void)pthread_mutex_unlock(&all->mutex);
    for (size_t i = 0; i < HF_TASKS_KEPT; i++)
        forget(all->kept[i]);
    (void)pthread_cond_destroy(&all->stopped);
    (void)pthread_mutex_destroy(&all->mutex);
    free(all);
}
