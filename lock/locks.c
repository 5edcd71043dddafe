/* locks.c - the life of a client of locks; work that is handed in; its timer. */
#include "lock/locks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/server_opts.h"
#include "base/structs.h"
#include "lock/callback.h"
#include "redis/url.h"

bool hf_lock_client_forked(const hf_lock_client *locks)
{
    return locks->pid != getpid();
}

bool hf_lock_client_ready(const hf_lock_client *locks)
{
    return locks->handles == 0 && hf_client_ready(locks->client) &&
           hf_lock_client_now(locks) != 0;
}

/* ---- Redis's time, as the last answer told it; from any thread ---- */

int64_t hf_lock_client_now(const hf_lock_client *locks)
{
    int64_t offset = atomic_load(&locks->redis_minus_boot_ms);
    return offset == INT64_MIN ? 0 : (int64_t)(hf_boot_ns() / HF_MS_NS) + offset;
}

int64_t hf_lock_client_not_after(const hf_lock_client *locks)
{
    int64_t now = hf_lock_client_now(locks);
    return now == 0 ? 0 : now + locks->request_timeout_ms;
}

uint64_t hf_lock_client_boot_ns(const hf_lock_client *locks, int64_t redis_ms)
{
    int64_t now = hf_lock_client_now(locks);
    return hf_boot_ns() + (redis_ms > now ? (uint64_t)(redis_ms - now) * HF_MS_NS : 0);
}

void hf_lock_client_clock(hf_lock_client *locks, int64_t now_ms)
{
    atomic_store(&locks->redis_minus_boot_ms,
                 now_ms - (int64_t)(hf_boot_ns() / HF_MS_NS));
}

/* ---- lists ---- */

void hf_lock_client_move(hf_lock *lock, hf_lock **list)
{
    if (lock->list != NULL) {
        if (lock->next != NULL)
            lock->next->prev = lock->prev;
        if (lock->prev != NULL)
            lock->prev->next = lock->next;
        else
            *lock->list = lock->next;
    }
    lock->next = lock->prev = NULL;
    lock->list = list;
    if (list == NULL)
        return;
    lock->next = *list;
    if (*list != NULL)
        (*list)->prev = lock;
    *list = lock;
}

void hf_lock_client_background(hf_lock *lock, bool on)
{
    if (lock->background != on)
        hf_driver_background(&lock->locks->driver, on ? 1 : -1);
    lock->background = on;
}

void hf_lock_client_over(hf_lock *lock)
{
    lock->over = true;
    lock->step = STEP_RELEASE;
    lock->due_ns = lock->release_until_ns = lock->tell_until_ns = UINT64_MAX;
    if (lock->in_flight > 0 || atomic_load(&lock->cancel_queued) ||
        atomic_load(&lock->event_runs))
        return;
    hf_lock_client_background(lock, false);
    hf_lock_client_move(lock, NULL);
    hf_lock_free(lock);
}

/* ---- closing ---- */

static void on_drained(hf_lock_client *locks);

static void begin_closing(hf_lock_client *locks)
{
    locks->closing = true;
    locks->close_until_ns = hf_boot_ns() + locks->request_timeout_ms * HF_MS_NS;
    hf_ask_end_all(locks, HF_CLOSED);
    while (locks->resting != NULL) {
        hf_lock *lock = locks->resting;
        int kept = HF_LOCK_NOT_LOST;
        (void)atomic_compare_exchange_strong(&lock->reason, &kept, HF_LOCK_CLOSED);
        hf_held_drop(lock);
        atomic_store(&lock->state, HF_LOCK_GONE);
        hf_held_signal(lock);
        hf_release_begin(lock);
    }
    for (hf_lock *lock = locks->active, *next; lock != NULL; lock = next) {
        next = lock->next;
        if (lock->step != STEP_RELEASE)
            hf_acquire_fail(lock, HF_CLOSED, "the client is being closed");
    }
}

static void run_close(hf_lock_task *task)
{
    hf_lock_client *locks = HF_CONTAINER(task, hf_lock_client, close_task);
    begin_closing(locks);
}

/* Leaves nothing that could still be answered: what is left is told by the clients' end.
 */
static bool is_drained(const hf_lock_client *locks, uint64_t now_ns)
{
    if (now_ns >= locks->close_until_ns)
        return true;
    return locks->active == NULL && locks->asks == NULL;
}

/* ---- the timer ---- */

static void on_timer(uv_timer_t *timer)
{
    hf_lock_client *locks = timer->data;
    uint64_t now_ns = hf_boot_ns();
    for (hf_lock *lock = locks->active, *next; lock != NULL; lock = next) {
        next = lock->next;
        if (lock->step == STEP_RELEASE)
            hf_release_time(lock, now_ns);
        else
            hf_acquire_time(lock, now_ns);
    }
    hf_ask_pump(locks, now_ns);
    if (now_ns >= hf_grants_due_ns(locks))
        hf_grants_listen(locks);
    hf_lock_client_end_turn(locks);
}

static uint64_t first_due_ns(hf_lock_client *locks)
{
    uint64_t first_ns = hf_ask_due_ns(locks);
    if (locks->closing && locks->close_until_ns < first_ns)
        first_ns = locks->close_until_ns;
    uint64_t heard_ns = hf_grants_due_ns(locks);
    first_ns = heard_ns < first_ns ? heard_ns : first_ns;
    for (const hf_lock *lock = locks->active; lock != NULL; lock = lock->next) {
        uint64_t due_ns = lock->step == STEP_RELEASE ? hf_release_due_ns(lock)
                                                     : hf_acquire_due_ns(lock);
        if (due_ns < first_ns)
            first_ns = due_ns;
    }
    return first_ns;
}

void hf_lock_client_end_turn(hf_lock_client *locks)
{
    uint64_t now_ns = hf_boot_ns();
    if (locks->handles > 0)
        return;
    if (locks->unfit) {
        locks->unfit = false;
        hf_client_reset(locks->client);
    }
    if (locks->closing && is_drained(locks, now_ns)) {
        on_drained(locks);
        return;
    }
    uint64_t due_ns = first_due_ns(locks);
    if (due_ns == UINT64_MAX) {
        (void)uv_timer_stop(&locks->timer);
        return;
    }
    uv_update_time(locks->driver.loop);
    uint64_t ms = due_ns <= now_ns ? 0 : (due_ns - now_ns + HF_MS_NS - 1) / HF_MS_NS;
    (void)uv_timer_start(&locks->timer, on_timer, ms, 0);
}

/* ---- work ---- */

static hf_err submit(hf_lock_client *locks, hf_lock_task *task, bool last)
{
    uv_mutex_lock(&locks->driver.lock);
    bool closed = locks->closed;
    locks->closed = closed || last;
    if (!closed) {
        task->next = NULL;
        if (locks->last_task != NULL)
            locks->last_task->next = task;
        else
            locks->tasks = task;
        locks->last_task = task;
    }
    uv_mutex_unlock(&locks->driver.lock);
    if (closed)
        return HF_CLOSED;
    hf_driver_kick(&locks->driver);
    return HF_OK;
}

hf_err hf_lock_client_submit(hf_lock_client *locks, hf_lock_task *task)
{
    return submit(locks, task, false);
}

static void on_turn(void *arg)
{
    hf_lock_client *locks = arg;
    uv_mutex_lock(&locks->driver.lock);
    hf_lock_task *task = locks->tasks;
    locks->tasks = locks->last_task = NULL;
    uv_mutex_unlock(&locks->driver.lock);
    while (task != NULL) {
        hf_lock_task *next = task->next;
        task->run(task);
        task = next;
    }
    hf_grants_notes(locks);
    hf_release_notes(locks);
    hf_lock_client_end_turn(locks);
    if (locks->handles == 0)
        hf_redis_flush(locks->client); /* now: a turn of the loop is saved */
}

static bool is_due(void *arg)
{
    const hf_lock_client *locks = arg;
    return locks->handles == 0 && hf_client_in_flight(locks->client) > 0;
}

/* ---- the connection ---- */

/* From the oldest on: who was handed in first stands first in line. */
static void pump(hf_lock_client *locks)
{
    hf_lock *lock = locks->active, *newer;
    while (lock != NULL && lock->next != NULL)
        lock = lock->next;
    for (; lock != NULL; lock = newer) {
        newer = lock->prev;
        if (lock->step == STEP_ACQUIRE)
            hf_acquire_send(lock);
        else if (lock->step == STEP_RELEASE && !lock->over)
            hf_release_send(lock);
    }
    hf_ask_pump(locks, hf_boot_ns());
    hf_grants_listen(locks);
}

static void on_time(const hf_answer *answer, void *arg)
{
    hf_lock_client *locks = arg;
    int64_t now_ms;
    if (hf_time_read(answer, &now_ms) == HF_OK) {
        hf_lock_client_clock(locks, now_ms);
        pump(locks);
    }
    hf_lock_client_end_turn(locks);
}

/* The next connection may lead to another server: its time is asked for first. */
static void on_client(hf_client *client, hf_err err, const char *detail, void *arg)
{
    hf_lock_client *locks = arg;
    (void)detail;
    atomic_store(&locks->redis_minus_boot_ms, INT64_MIN);
    atomic_fetch_add(&locks->epoch, 1);
    if (err == HF_OK)
        hf_listener_follow(&locks->listener, client);
    if (err == HF_OK && hf_redis_time(client, on_time, locks) != HF_OK)
        hf_client_reset(client);
    hf_lock_client_end_turn(locks);
}

/* ---- life ---- */

static void free_locks(hf_lock_client *locks)
{
    hf_server_opts_free(&locks->client_opts.server);
    free(locks);
}

/* host-pid-random, as workers are called. */
static hf_err set_id(hf_lock_client *locks)
{
    char host[56] = "", random[HF_LOCK_OWNER_SIZE];
    hf_err err = hf_lock_owner_make(random);
    (void)gethostname(host, sizeof host - 1);
    for (char *c = host; *c != '\0'; c++)
        if (!hf_name_ok_n(c, 1))
            *c = '-';
    (void)snprintf(locks->id, sizeof locks->id, "%s-%ld-%.16s", host, (long)getpid(),
                   random);
    return err;
}

static hf_err fill(hf_lock_client *locks, const hf_lock_client_opts *o,
                   const hf_server_opts *server)
{
    locks->pid = getpid();
    locks->connect_timeout_ms = server->connect_timeout_ms;
    locks->request_timeout_ms = server->request_timeout_ms;
    locks->on_event = o->on_event;
    locks->arg = o->arg;
    atomic_init(&locks->redis_minus_boot_ms, INT64_MIN);
    (void)snprintf(locks->ns, sizeof locks->ns, "%s", server->ns);
    locks->client_opts = (hf_client_opts){.server = *server, .arg = locks};
    hf_err err = hf_server_opts_own(&locks->client_opts.server);
    if (err == HF_OK)
        err = hf_random_bytes(&locks->rng.state, sizeof locks->rng.state);
    return err == HF_OK ? set_id(locks) : err;
}

static void end_handles(hf_lock_client *locks);

/* The watchdog comes first: it needs nothing of the caller's loop, which cannot be run
 * here, and finds what is wrong with the options. If this fails it has freed `locks`. */
static hf_err start(hf_lock_client *locks, uv_loop_t *loop, char *detail)
{
    hf_err err = hf_held_start(locks, &locks->client_opts, detail);
    if (err == HF_OK)
        err = hf_driver_open(&locks->driver, loop, on_turn, is_due, locks);
    if (err != HF_OK) {
        hf_watchdog_stop(locks->watchdog);
        hf_guard_done(&locks->guard);
        hf_hear_done(locks);
        free_locks(locks);
        return err;
    }
    int made = uv_timer_init(locks->driver.loop, &locks->timer);
    HF_ASSERT(made == 0);
    locks->timer.data = locks;
    locks->client_opts.loop = locks->driver.loop;
    hf_grants_init(locks);
    hf_client_opts opts = locks->client_opts;
    opts.on_event = on_client;
    opts.replica_ok = true; /* for those who only look */
    err = hf_client_open(&locks->client, &opts, detail);
    if (err != HF_OK)
        end_handles(locks);
    return err;
}

static hf_err init_parts(hf_lock_client *locks, const hf_lock_client_opts *o)
{
    hf_err err = hf_hear_init(locks);
    if (err != HF_OK)
        return err;
    err = hf_guard_init(&locks->guard, o->minder);
    if (err != HF_OK)
        hf_hear_done(locks);
    return err;
}

hf_err hf_lock_client_open(hf_lock_client **out, const hf_lock_client_opts *theirs,
                           char detail[HF_DETAIL_SIZE])
{
    hf_lock_client_opts sized;
    const hf_lock_client_opts *opts = &sized;
    char why[HF_DETAIL_SIZE] = "";
    hf_server_opts server;
    if (theirs == NULL)
        return hf_lock_say(detail, HF_INVALID, "expected options, found none");
    hf_err err =
        hf_struct_in(&sized, sizeof sized, theirs, "hf_lock_client_opts", detail);
    if (err == HF_OK)
        err = hf_server_opts_in(&server, opts->server, detail);
    if (err != HF_OK)
        return err;
    hf_lock_client *locks = calloc(1, sizeof *locks);
    if (locks == NULL)
        return hf_lock_say(detail, HF_NOMEM, "out of memory");
    err = fill(locks, opts, &server);
    if (err == HF_OK)
        err = init_parts(locks, opts);
    if (err != HF_OK) {
        free_locks(locks);
        return hf_lock_say(detail, err, "%s", hf_err_text(err));
    }
    err = start(locks, opts->loop, why);
    if (err == HF_OK) {
        *out = locks;
        return HF_OK;
    }
    return hf_lock_say(detail, err, "%s", why[0] != '\0' ? why : hf_err_text(err));
}

/* ---- the end ---- */

static void finish(hf_lock_client *locks)
{
    void (*cb)(void *arg) = locks->on_closed;
    void *arg = locks->closed_arg;
    hf_watchdog_stop(locks->watchdog);
    hf_guard_done(&locks->guard);
    hf_hear_done(locks);
    hf_driver_free(&locks->driver);
    free_locks(locks);
    if (cb != NULL)
        cb(arg);
}

static void on_gone(hf_lock_client *locks)
{
    if (--locks->handles > 0)
        return;
    hf_watchdog_stop(locks->watchdog); /* after it no callback runs */
    locks->watchdog = NULL;
    while (locks->active != NULL) /* its last answer came with the client's end */
        hf_release_drop(locks->active);
    if (!locks->driver.threaded)
        finish(locks);
}

static void on_client_closed(void *arg)
{
    on_gone(arg);
}

static void on_timer_closed(uv_handle_t *handle)
{
    on_gone(handle->data);
}

static void on_wake_closed(uv_handle_t *handle)
{
    on_gone(HF_CONTAINER(handle->data, hf_lock_client, driver));
}

static void close_handles(hf_lock_client *locks)
{
    locks->handles = 2U + (locks->client != NULL) + (locks->listener.client != NULL) +
                     (locks->confirmer != NULL);
    if (locks->client != NULL)
        hf_client_close(locks->client, on_client_closed, locks);
    if (locks->listener.client != NULL)
        hf_client_close(locks->listener.client, on_client_closed, locks);
    if (locks->confirmer != NULL)
        hf_client_close(locks->confirmer, on_client_closed, locks);
    uv_close((uv_handle_t *)&locks->timer, on_timer_closed);
    hf_driver_close_wake(&locks->driver, on_wake_closed);
}

/* In the end it is freed: here, or on the caller's loop. */
static void end_handles(hf_lock_client *locks)
{
    hf_driver_stop(&locks->driver);
    close_handles(locks);
    if (!locks->driver.threaded)
        return;
    (void)uv_run(locks->driver.loop, UV_RUN_DEFAULT);
    finish(locks);
}

static void on_drained(hf_lock_client *locks)
{
    hf_driver_waiter *closer = locks->closer;
    locks->closer = NULL;
    if (!locks->driver.threaded)
        close_handles(locks);
    else if (closer != NULL)
        hf_driver_done(&locks->driver, closer);
}

static void close_threaded(hf_lock_client *locks, hf_driver_waiter *closer)
{
    hf_driver_await(&locks->driver, closer);
    hf_driver_waiter_done(closer);
    end_handles(locks);
}

void hf_lock_client_close(hf_lock_client *locks, void (*cb)(void *arg), void *arg)
{
    hf_driver_waiter closer;
    if (locks == NULL) {
        if (cb != NULL)
            cb(arg);
        return;
    }
    if (hf_lock_client_forked(locks))
        return;
    /* Else it would wait for the callback that waits for it. */
    HF_ASSERT(!locks->driver.threaded || !hf_callback_inside(&locks->driver));
    hf_guard_kill(&locks->guard);
    locks->on_closed = cb;
    locks->closed_arg = arg;
    locks->close_task.run = run_close;
    if (locks->driver.threaded) {
        HF_ASSERT(hf_driver_waiter_init(&closer) == HF_OK);
        locks->closer = &closer;
    }
    hf_err err = submit(locks, &locks->close_task, true);
    HF_ASSERT(err == HF_OK);
    if (locks->driver.threaded)
        close_threaded(locks, &closer);
}
