/* lock_servers.c - a client of several servers: one loop, and on it a client of locks for
 * each of them; its timer; work that is handed in; its end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/server_opts.h"
#include "base/structs.h"
#include "lock/callback.h"
#include "lock/lock_set.h"
#include "redis/call.h"

bool hf_servers_forked(const hf_lock_servers *servers)
{
    return servers->pid != getpid();
}

bool hf_servers_coming(const hf_lock_servers *servers, size_t server)
{
    const hf_lock_client *locks = servers->clients[server];
    return hf_client_is_new(locks->client) ||
           (hf_client_ready(locks->client) && !hf_lock_client_ready(locks));
}

/* ---- work ---- */

hf_err hf_servers_hand_in(hf_lock_servers *servers, hf_lock_task *task, bool last)
{
    uv_mutex_lock(&servers->driver.lock);
    bool closed = servers->closed;
    servers->closed = closed || last;
    if (!closed) {
        task->next = NULL;
        if (servers->last_task != NULL)
            servers->last_task->next = task;
        else
            servers->tasks = task;
        servers->last_task = task;
    }
    uv_mutex_unlock(&servers->driver.lock);
    if (closed)
        return HF_CLOSED;
    hf_driver_kick(&servers->driver);
    return HF_OK;
}

static void on_turn(void *arg)
{
    hf_lock_servers *servers = arg;
    uv_mutex_lock(&servers->driver.lock);
    hf_lock_task *task = servers->tasks;
    servers->tasks = servers->last_task = NULL;
    uv_mutex_unlock(&servers->driver.lock);
    while (task != NULL) {
        hf_lock_task *next = task->next;
        task->run(task);
        task = next;
    }
    for (hf_lock_set *set = servers->sets, *next; set != NULL; set = next) {
        next = set->next;
        if (atomic_exchange(&set->news, false))
            set->kind->news(set);
        hf_set_check(set);
    }
    hf_servers_settle(servers);
}

/* ---- the timer ---- */

static void on_timer(uv_timer_t *timer)
{
    hf_lock_servers *servers = timer->data;
    uint64_t now_ns = hf_boot_ns();
    for (hf_lock_set *set = servers->sets, *next; set != NULL; set = next) {
        next = set->next;
        if (now_ns >= set->kind->due_ns(set))
            set->kind->time(set, now_ns);
        hf_set_time(set, now_ns);
        hf_set_check(set);
    }
    hf_servers_settle(servers);
}

static void close_clients(hf_lock_servers *servers);

void hf_servers_settle(hf_lock_servers *servers)
{
    uint64_t now_ns = hf_boot_ns(), due_ns = UINT64_MAX;
    if (servers->closing && servers->sets == NULL) {
        (void)uv_timer_stop(&servers->timer);
        close_clients(servers);
        return;
    }
    for (const hf_lock_set *set = servers->sets; set != NULL; set = set->next) {
        uint64_t at_ns = set->kind->due_ns(set);
        uint64_t tell_ns = hf_set_due_ns(set);
        at_ns = tell_ns < at_ns ? tell_ns : at_ns;
        due_ns = at_ns < due_ns ? at_ns : due_ns;
    }
    if (due_ns == UINT64_MAX) {
        (void)uv_timer_stop(&servers->timer);
        return;
    }
    uv_update_time(servers->driver.loop);
    uint64_t ms = due_ns <= now_ns ? 0 : (due_ns - now_ns + HF_MS_NS - 1) / HF_MS_NS;
    (void)uv_timer_start(&servers->timer, on_timer, ms, 0);
}

/* ---- the end ---- */

static void finish(hf_lock_servers *servers)
{
    void (*cb)(void *arg) = servers->on_closed;
    void *arg = servers->closed_arg;
    hf_driver_free(&servers->driver);
    free(servers);
    if (cb != NULL)
        cb(arg);
}

static void on_handle_gone(hf_lock_servers *servers)
{
    if (--servers->handles == 0 && !servers->driver.threaded)
        finish(servers);
}

static void on_timer_closed(uv_handle_t *handle)
{
    on_handle_gone(handle->data);
}

static void on_wake_closed(uv_handle_t *handle)
{
    on_handle_gone(HF_CONTAINER(handle->data, hf_lock_servers, driver));
}

static void close_handles(hf_lock_servers *servers)
{
    servers->handles = 2;
    uv_close((uv_handle_t *)&servers->timer, on_timer_closed);
    hf_driver_close_wake(&servers->driver, on_wake_closed);
}

static void on_clients_gone(hf_lock_servers *servers)
{
    hf_driver_waiter *closer = servers->closer;
    servers->closer = NULL;
    if (!servers->driver.threaded)
        close_handles(servers);
    else
        hf_driver_done(&servers->driver, closer);
}

static void on_client_closed(void *arg)
{
    hf_lock_servers *servers = arg;
    if (--servers->open_clients == 0)
        on_clients_gone(servers);
}

static void close_clients(hf_lock_servers *servers)
{
    if (servers->clients_close)
        return;
    servers->clients_close = true;
    servers->open_clients = servers->n;
    for (size_t i = 0; i < servers->n; i++)
        hf_lock_client_close(servers->clients[i], on_client_closed, servers);
    if (servers->n == 0)
        on_clients_gone(servers);
}

static void run_close(hf_lock_task *task)
{
    hf_lock_servers *servers = HF_CONTAINER(task, hf_lock_servers, close_task);
    servers->closing = true;
    for (hf_lock_set *set = servers->sets; set != NULL; set = set->next)
        hf_set_close(set);
}

void hf_lock_servers_close(hf_lock_servers *servers, void (*cb)(void *arg), void *arg)
{
    hf_driver_waiter closer;
    if (servers == NULL) {
        if (cb != NULL)
            cb(arg);
        return;
    }
    if (hf_servers_forked(servers))
        return;
    bool threaded = servers->driver.threaded;
    /* Else it would wait for the callback that waits for it. */
    HF_ASSERT(!threaded || !hf_callback_inside(&servers->driver));
    servers->on_closed = cb;
    servers->closed_arg = arg;
    servers->close_task.run = run_close;
    if (threaded) {
        HF_ASSERT(hf_driver_waiter_init(&closer) == HF_OK);
        servers->closer = &closer;
    }
    HF_ASSERT(hf_servers_hand_in(servers, &servers->close_task, true) == HF_OK);
    if (!threaded)
        return;
    hf_driver_await(&servers->driver, &closer);
    hf_driver_waiter_done(&closer);
    hf_driver_stop(&servers->driver);
    close_handles(servers);
    (void)uv_run(servers->driver.loop, UV_RUN_DEFAULT);
    finish(servers);
}

/* ---- its beginning ---- */

static hf_err check_opts(const hf_lock_client_opts *o, hf_server_opts *server, size_t n,
                         char *detail)
{
    if (n < 1 || n > HF_LOCK_SERVERS_MAX)
        return hf_lock_say(detail, HF_INVALID, "expected 1 to %d servers, found %zu",
                           HF_LOCK_SERVERS_MAX, n);
    hf_err err = hf_server_opts_in(server, o->server, detail);
    if (err != HF_OK)
        return err;
    if (server->url != NULL || o->on_event != NULL || o->arg != NULL || o->minder != NULL)
        return hf_lock_say(detail, HF_INVALID,
                           "several servers have their URLs beside, and events belong to "
                           "a set: expected no url, on_event, arg and minder");
    return HF_OK;
}

/* Each server once: a set counts servers, not names of servers. */
static hf_err set_places(hf_lock_servers *servers, const char *const *urls, char *detail)
{
    char why[HF_DETAIL_SIZE] = "";
    for (size_t i = 0; i < servers->n; i++) {
        hf_url url;
        hf_err err = urls[i] == NULL ? HF_INVALID : hf_url_parse(&url, urls[i], why);
        if (err == HF_OK)
            hf_url_place(&url, servers->places[i]);
        if (urls[i] != NULL)
            hf_url_wipe(&url);
        if (err != HF_OK)
            return hf_lock_say(detail, err, "server %zu of %zu: %s", i + 1, servers->n,
                               urls[i] == NULL ? "expected a URL" : why);
        for (size_t k = 0; k < i; k++)
            if (strcmp(servers->places[k], servers->places[i]) == 0)
                return hf_lock_say(detail, HF_INVALID,
                                   "expected each server once, found %.150s twice",
                                   servers->places[i]);
    }
    return HF_OK;
}

static hf_err start(hf_lock_servers *servers, uv_loop_t *loop)
{
    hf_err err = hf_random_bytes(&servers->rng.state, sizeof servers->rng.state);
    if (err == HF_OK)
        err = hf_driver_open(&servers->driver, loop, on_turn, NULL, servers);
    if (err != HF_OK)
        return err;
    HF_ASSERT(uv_timer_init(servers->driver.loop, &servers->timer) == 0);
    servers->timer.data = servers;
    return HF_OK;
}

/* Before the loop is run by anybody but us. */
static hf_err open_clients(hf_lock_servers *servers, const char *const *urls,
                           const hf_lock_client_opts *opts, const hf_server_opts *server,
                           char *detail)
{
    char why[HF_DETAIL_SIZE] = "";
    hf_lock_client_opts one = *opts;
    hf_server_opts here = *server;
    one.server = &here;
    size_t n = servers->n;
    hf_err err = HF_OK;
    one.loop = servers->driver.loop;
    for (servers->n = 0; servers->n < n && err == HF_OK; servers->n += err == HF_OK) {
        here.url = urls[servers->n];
        err = hf_lock_client_open(&servers->clients[servers->n], &one, why);
    }
    if (err != HF_OK)
        return hf_lock_say(detail, err, "%.120s: %.120s", servers->places[servers->n],
                           why);
    return HF_OK;
}

hf_err hf_lock_servers_open(hf_lock_servers **out, const char *const *urls, size_t n,
                            const hf_lock_client_opts *theirs,
                            char detail[HF_DETAIL_SIZE])
{
    hf_lock_client_opts sized;
    const hf_lock_client_opts *opts = &sized;
    hf_server_opts server = {HF_SERVER_OPTS_INIT};
    hf_err err =
        hf_struct_in(&sized, sizeof sized, theirs, "hf_lock_client_opts", detail);
    if (err == HF_OK)
        err = check_opts(opts, &server, n, detail);
    if (err != HF_OK)
        return err;
    hf_lock_servers *servers = calloc(1, sizeof *servers);
    if (servers == NULL)
        return hf_lock_say(detail, HF_NOMEM, "%s", hf_err_text(HF_NOMEM));
    servers->pid = getpid();
    servers->n = n;
    servers->connect_timeout_ms = server.connect_timeout_ms;
    servers->request_timeout_ms = server.request_timeout_ms;
    err = set_places(servers, urls, detail);
    if (err != HF_OK) {
        free(servers);
        return err;
    }
    err = start(servers, opts->loop);
    if (err != HF_OK) {
        free(servers);
        return hf_lock_say(detail, err, "%s", hf_err_text(err));
    }
    err = open_clients(servers, urls, opts, &server, detail);
    hf_driver_background(&servers->driver, 1); /* its thread has the loop from now on */
    if (err == HF_OK)
        *out = servers;
    else
        hf_lock_servers_close(servers, NULL, NULL);
    return err;
}
