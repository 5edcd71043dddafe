/* client.c - the life of a client of locks; its timer. */
#include "lock/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/detail.h"
#include "base/id.h"
#include "base/server_opts.h"
#include "base/structs.h"
#include "lock/acquire.h"
#include "lock/ask.h"
#include "lock/guard.h"
#include "lock/hold.h"
#include "lock/lock.h"
#include "lock/nodes.h"
#include "lock/notices.h"
#include "lock/release.h"
#include "lock/tasks.h"
#include "lock/watchdog/watch_loop.h"
#include "lock/watchdog/watchdog.h"
#include "redis/err.h"
#include "redis/url.h"

bool hf_lock_client_is_coming(const hf_lock_client *locks)
{
    const hf_node *home = locks->nodes.home;
    return home->client != NULL &&
           (hf_client_is_new(home->client) ||
            (hf_client_ready(home->client) &&
             !hf_lock_node_ready(HF_CONTAINER(home, hf_lock_node, base))));
}

bool hf_lock_client_in_cluster(const hf_lock_client *locks)
{
    return !hf_cluster_is_plain(locks->nodes.cluster);
}

/* ---- closing ---- */

static void begin_closing(hf_lock_client *locks)
{
    locks->closing = true;
    locks->close_until_ns = hf_boot_ns() + locks->request_timeout_ms * HF_MS_NS;
    hf_ask_end_all(locks, NULL, HF_CLOSED, hf_err_text(HF_CLOSED));
    while (locks->held != NULL) {
        hf_lock *lock = locks->held;
        int kept = HF_LOCK_NOT_LOST;
        (void)atomic_compare_exchange_strong(&lock->reason, &kept, HF_LOCK_CLOSED);
        hf_hold_drop(lock);
        atomic_store(&lock->state, HF_LOCK_GONE);
        hf_hold_signal(lock);
        hf_release_begin(lock);
    }
    for (hf_lock *lock = locks->active, *next; lock != NULL; lock = next) {
        next = lock->next;
        if (lock->step != STEP_RELEASE)
            hf_acquire_fail(lock, HF_CLOSED, "the client is being closed");
    }
}

/* Whether all requests have their answers. The end of the clients answers the rest. */
static bool is_drained(const hf_lock_client *locks, uint64_t now_ns)
{
    if (now_ns >= locks->close_until_ns)
        return true;
    return locks->active == NULL && locks->asks == NULL;
}

/* ---- the timer ---- */

static uint64_t first_due_ns(hf_lock_client *locks)
{
    uint64_t first_ns = hf_ask_due_ns(locks);
    if (locks->closing && locks->close_until_ns < first_ns)
        first_ns = locks->close_until_ns;
    uint64_t heard_ns = hf_acquire_grants_due_ns(locks);
    first_ns = heard_ns < first_ns ? heard_ns : first_ns;
    for (const hf_lock *lock = locks->active; lock != NULL; lock = lock->next) {
        uint64_t due_ns = lock->step == STEP_RELEASE ? hf_release_due_ns(lock)
                                                     : hf_acquire_due_ns(lock);
        if (due_ns < first_ns)
            first_ns = due_ns;
    }
    return first_ns;
}

static void close_handles(hf_lock_client *locks);

/* Sets the timer again, and continues closing. */
static void on_turned(void *arg)
{
    hf_lock_client *locks = arg;
    uint64_t now_ns = hf_boot_ns();
    if (locks->tasks.ended)
        return;
    for (hf_node *base = locks->nodes.first; base != NULL; base = base->next) {
        hf_lock_node *node = HF_CONTAINER(base, hf_lock_node, base);
        if (node->unfit)
            hf_client_reset(base->client);
        node->unfit = false;
    }
    if (locks->closing && is_drained(locks, now_ns))
        close_handles(locks);
    else
        hf_tasks_set_timer(&locks->tasks, first_due_ns(locks));
}

static void on_time(void *arg)
{
    hf_lock_client *locks = arg;
    uint64_t now_ns = hf_boot_ns();
    for (hf_lock *lock = locks->active, *next; lock != NULL; lock = next) {
        next = lock->next;
        if (lock->step == STEP_RELEASE)
            hf_release_time(lock, now_ns);
        else
            hf_acquire_time(lock, now_ns);
    }
    hf_ask_pump(locks, now_ns);
    if (now_ns >= hf_acquire_grants_due_ns(locks))
        hf_acquire_grants_listen(locks);
    on_turned(locks);
}

/* ---- work ---- */

static void submit(void *arg)
{
    hf_lock_client *locks = arg;
    if (hf_tasks_run(&locks->tasks) && !locks->closing)
        begin_closing(locks);
    hf_nodes_tidy(&locks->nodes);
    hf_acquire_grants_notes(locks);
    hf_release_notes(locks);
    on_turned(locks);
}

static void flush(void *arg)
{
    const hf_lock_client *locks = arg;
    if (locks->tasks.ended)
        return;
    for (const hf_node *node = locks->nodes.first; node != NULL; node = node->next)
        hf_client_flush(node->client);
}

static bool expects(void *arg)
{
    const hf_lock_client *locks = arg;
    if (locks->tasks.ended)
        return false;
    for (const hf_node *node = locks->nodes.first; node != NULL; node = node->next)
        if (hf_client_in_flight(node->client) > 0)
            return true;
    return false;
}

/* ---- the nodes ---- */

/* From the oldest on: the first task gets the first place in the line. */
static void on_ready(hf_lock_client *locks)
{
    hf_lock *lock = locks->active, *newer;
    while (lock != NULL && lock->next != NULL)
        lock = lock->next;
    for (; lock != NULL; lock = newer) {
        newer = lock->prev;
        if (lock->step == STEP_ACQUIRE)
            hf_acquire_send(lock);
        else if (lock->step == STEP_CONFIRM)
            hf_acquire_confirm_send(lock);
        else if (lock->step == STEP_RELEASE && !lock->over)
            hf_release_send(lock);
    }
    hf_ask_pump(locks, hf_boot_ns());
    hf_acquire_grants_listen(locks);
}

/* Locks that wait in line, or are held, go on. */
static void on_refused(hf_lock_client *locks, const hf_lock_node *node)
{
    char why[HF_DETAIL_SIZE];
    hf_err err = hf_node_status(&node->base, why);
    for (hf_lock *lock = locks->active, *next; lock != NULL; lock = next) {
        next = lock->next;
        if (lock->step == STEP_ACQUIRE && lock->in_flight == 0 &&
            atomic_load(&lock->node) == node)
            hf_acquire_not_reached(lock);
    }
    hf_ask_end_all(locks, node, err, why);
}

static void on_change(void *arg)
{
    hf_lock_client *locks = arg;
    for (hf_lock *lock = locks->active; lock != NULL; lock = lock->next)
        (void)hf_lock_route(lock);
    for (hf_lock *lock = locks->held; lock != NULL; lock = lock->next)
        (void)hf_lock_route(lock);
    if (hf_nodes_are_refused(&locks->nodes))
        on_refused(locks, HF_CONTAINER(locks->nodes.away, hf_lock_node, base));
    on_ready(locks);
    hf_nodes_tidy(&locks->nodes);
    hf_watchdog_call(locks->watchdog, hf_boot_ns()); /* to listen elsewhere */
    on_turned(locks);
}

static bool is_at(const hf_lock *lock, const hf_lock_node *node)
{
    for (; lock != NULL; lock = lock->next)
        if (atomic_load(&lock->node) == node || lock->asked == node)
            return true;
    return false;
}

/* While the nodes disagree a lock goes back and forth: it must find the connections of
 * those with slots again. */
static bool needs(void *owner, const hf_node *base)
{
    const hf_lock_client *locks = owner;
    const hf_lock_node *node = HF_CONTAINER(base, hf_lock_node, base);
    if (hf_cluster_has_slots(locks->nodes.cluster, base->redis) ||
        is_at(locks->active, node) || is_at(locks->held, node))
        return true;
    for (const hf_lock_ask *ask = locks->asks; ask != NULL; ask = ask->next)
        if (ask->node == node)
            return true;
    return false;
}

static void call_watchdog(void *owner, uint64_t when_ns)
{
    const hf_lock_client *locks = owner;
    hf_watchdog_call(locks->watchdog, when_ns);
}

static void wake(void *owner)
{
    hf_lock_client *locks = owner;
    hf_run_loop_wake(&locks->tasks.run);
}

static const hf_nodes_hooks of_nodes = {.on_event = hf_lock_node_on_event,
                                        .on_change = on_change,
                                        .needs = needs,
                                        .call_second = call_watchdog,
                                        .wake = wake,
                                        .on_second = hf_lock_node_on_second};

static const hf_lock_node_hooks of_node = {on_ready, on_refused};

/* ---- life ---- */

static void free_locks(hf_lock_client *locks)
{
    hf_nodes_free(&locks->nodes);
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
    hf_machine_id(locks->machine);
    if (locks->machine[0] == '\0')
        memcpy(locks->machine, locks->id, sizeof locks->id);
    return err;
}

static hf_err fill(hf_lock_client *locks, const hf_lock_client_opts *o,
                   const hf_server_opts *server, char detail[HF_DETAIL_SIZE])
{
    locks->on_event = o->on_event;
    locks->arg = o->arg;
    locks->on_asked = hf_release_answered;
    locks->hooks = &of_node;
    (void)snprintf(locks->ns, sizeof locks->ns, "%s", server->ns);
    (void)snprintf(locks->replicas_ns, sizeof locks->replicas_ns, "%s:lock", locks->ns);
    locks->connect_timeout_ms = server->connect_timeout_ms;
    locks->request_timeout_ms = server->request_timeout_ms;
    const hf_nodes_opts nodes = {.node_size = sizeof(hf_lock_node),
                                 .replica_ok = true, /* for readers */
                                 .ns = locks->replicas_ns,
                                 .hooks = &of_nodes,
                                 .owner = locks};
    hf_err err = hf_nodes_open(&locks->nodes, server, &nodes, detail);
    if (err == HF_OK)
        err = hf_random_bytes(&locks->rng.state, sizeof locks->rng.state);
    return err == HF_OK ? set_id(locks) : err;
}

/* The parts that do not need the loop; nothing uses them any more. */
static void free_parts(void *arg)
{
    hf_lock_client *locks = arg;
    hf_guard_done(&locks->guard);
    hf_notices_done(locks);
    free_locks(locks);
}

static void close_handles(hf_lock_client *locks)
{
    hf_tasks_end(&locks->tasks, 2);
    hf_listener_close(&locks->listener, hf_tasks_closed, &locks->tasks);
    hf_nodes_close(&locks->nodes, hf_tasks_closed, &locks->tasks);
}

static void on_gone(void *arg)
{
    hf_lock_client *locks = arg;
    hf_watchdog_stop(locks->watchdog); /* after it no callback runs */
    locks->watchdog = NULL;
    while (locks->active != NULL) /* closing the client has answered its requests */
        hf_release_drop(locks->active);
}

static const hf_tasks_hooks hooks = {
    {submit, flush, expects}, on_time, on_turned, on_gone, free_parts};

static hf_err open_handles(hf_lock_client *locks, uv_loop_t *loop, char *detail)
{
    hf_err err = hf_tasks_open(&locks->tasks, loop, &hooks, locks);
    if (err != HF_OK)
        return err;
    hf_acquire_grants_init(locks);
    if (hf_lock_client_in_cluster(locks)) /* no caller waits when held locks move */
        hf_run_loop_background(&locks->tasks.run, 1);
    err = hf_nodes_start(&locks->nodes, locks->tasks.run.uv, detail);
    if (err != HF_OK)
        hf_run_loop_close(&locks->tasks.run);
    return err;
}

/* ---- the watchdog's thread ---- */

static void on_watchdog_call(hf_watchdog *watchdog, uv_loop_t *loop, void *arg)
{
    hf_lock_client *locks = arg;
    hf_nodes_second_turn(&locks->nodes, loop);
    hf_notices_turn(locks, watchdog, loop);
}

static void on_part_stopped(void *arg)
{
    hf_lock_client *locks = arg;
    if (--locks->stopping == 0)
        locks->on_stopped(locks->stopped_arg);
}

static void on_watchdog_stop(void (*closed)(void *arg), void *closed_arg, void *arg)
{
    hf_lock_client *locks = arg;
    locks->stopping = 2;
    locks->on_stopped = closed;
    locks->stopped_arg = closed_arg;
    hf_notices_stop(locks, on_part_stopped, locks);
    hf_nodes_second_close(&locks->nodes, on_part_stopped, locks);
}

/* ---- opening and closing ---- */

/* The watchdog comes first: it needs nothing of the caller's loop, which cannot be run
 * here. If this fails it has freed `locks`. */
static hf_err start(hf_lock_client *locks, uv_loop_t *loop, hf_watch_loop *watch,
                    char *detail)
{
    const hf_watchdog_opts watchdog = {
        .loop = watch, .on_call = on_watchdog_call, .on_stop = on_watchdog_stop};
    hf_err err = hf_hold_start(locks, &watchdog);
    if (err == HF_OK)
        err = open_handles(locks, loop, detail);
    if (err != HF_OK) {
        hf_watchdog_stop(locks->watchdog);
        free_parts(locks);
        return err;
    }
    err = hf_tasks_start(&locks->tasks);
    if (err != HF_OK)
        hf_lock_client_close(locks, NULL, NULL);
    return err;
}

static hf_err init_parts(hf_lock_client *locks, const hf_lock_client_opts *o)
{
    hf_err err = hf_notices_init(locks);
    if (err != HF_OK)
        return err;
    err = hf_guard_init(&locks->guard, o->minder);
    if (err != HF_OK)
        hf_notices_done(locks);
    return err;
}

hf_err hf_lock_client_open(hf_lock_client **out, const hf_lock_client_opts *opts,
                           char detail[HF_DETAIL_SIZE])
{
    return hf_lock_client_open_on(out, opts, NULL, detail);
}

hf_err hf_lock_client_open_on(hf_lock_client **out, const hf_lock_client_opts *theirs,
                              hf_watch_loop *watch, char detail[HF_DETAIL_SIZE])
{
    hf_lock_client_opts sized;
    const hf_lock_client_opts *opts = &sized;
    char why[HF_DETAIL_SIZE] = "";
    hf_server_opts server;
    if (theirs == NULL)
        return hf_say(detail, HF_INVALID, "expected options, found none");
    hf_err err =
        hf_struct_in(&sized, sizeof sized, theirs, "hf_lock_client_opts", detail);
    if (err == HF_OK)
        err = hf_server_opts_in(&server, opts->server, detail);
    if (err != HF_OK)
        return err;
    hf_lock_client *locks = calloc(1, sizeof *locks);
    if (locks == NULL)
        return hf_say(detail, HF_NOMEM, "out of memory");
    err = fill(locks, opts, &server, why);
    if (err == HF_OK)
        err = init_parts(locks, opts);
    if (err != HF_OK) {
        free_locks(locks);
        return hf_say(detail, err, "%s", why[0] != '\0' ? why : hf_err_text(err));
    }
    err = start(locks, opts->loop, watch, why);
    if (err == HF_OK) {
        *out = locks;
        return HF_OK;
    }
    return hf_say(detail, err, "%s", why[0] != '\0' ? why : hf_err_text(err));
}

void hf_lock_client_close(hf_lock_client *locks, void (*cb)(void *arg), void *arg)
{
    if (locks == NULL) {
        if (cb != NULL)
            cb(arg);
        return;
    }
    if (!hf_tasks_forked(&locks->tasks))
        hf_guard_kill(&locks->guard);
    hf_tasks_close(&locks->tasks, cb, arg);
}
