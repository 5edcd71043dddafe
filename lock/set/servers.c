/* servers.c - a client of several servers: one loop, and on it a client of locks for
 * each of them; its timer; its end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/detail.h"
#include "base/server_opts.h"
#include "base/structs.h"
#include "lock/client.h"
#include "lock/set/set.h"
#include "lock/tasks.h"
#include "lock/watchdog/watch_loop.h"

/* ---- the timer ---- */

static void end(hf_lock_servers *servers)
{
    if (servers->tasks.ended)
        return;
    hf_tasks_end(&servers->tasks, servers->n);
    for (size_t i = 0; i < servers->n; i++)
        hf_lock_client_close(servers->clients[i], hf_tasks_closed, &servers->tasks);
}

static void on_turned(void *arg)
{
    hf_lock_servers *servers = arg;
    uint64_t due_ns = UINT64_MAX;
    if (servers->closing && servers->sets == NULL) {
        end(servers);
        return;
    }
    for (const hf_lock_set *set = servers->sets; set != NULL; set = set->next) {
        uint64_t at_ns = hf_set_due_ns(set);
        due_ns = at_ns < due_ns ? at_ns : due_ns;
    }
    hf_tasks_set_timer(&servers->tasks, due_ns);
}

static void on_time(void *arg)
{
    hf_lock_servers *servers = arg;
    uint64_t now_ns = hf_boot_ns();
    for (hf_lock_set *set = servers->sets, *next; set != NULL; set = next) {
        next = set->next;
        hf_set_time(set, now_ns);
    }
    on_turned(servers);
}

static void begin_closing(hf_lock_servers *servers)
{
    servers->closing = true;
    for (hf_lock_set *set = servers->sets; set != NULL; set = set->next)
        hf_set_close(set);
}

static void submit(void *arg)
{
    hf_lock_servers *servers = arg;
    if (hf_tasks_run(&servers->tasks) && !servers->closing)
        begin_closing(servers);
    for (hf_lock_set *set = servers->sets, *next; set != NULL; set = next) {
        next = set->next;
        if (atomic_exchange(&set->member_lost, false))
            set->kind->lost(set);
        hf_set_check(set);
    }
    on_turned(servers);
}

/* ---- the end ---- */

static const hf_tasks_hooks hooks = {
    {submit, NULL, NULL}, on_time, on_turned, NULL, free};

void hf_lock_servers_close(hf_lock_servers *servers, void (*cb)(void *arg), void *arg)
{
    if (servers != NULL)
        hf_tasks_close(&servers->tasks, cb, arg);
    else if (cb != NULL)
        cb(arg);
}

/* ---- its beginning ---- */

static hf_err check_opts(const hf_lock_client_opts *o, hf_server_opts *server, size_t n,
                         char *detail)
{
    if (n < 1 || n > HF_LOCK_SERVERS_MAX)
        return hf_say(detail, HF_INVALID, "expected 1 to %d servers, found %zu",
                      HF_LOCK_SERVERS_MAX, n);
    hf_err err = hf_server_opts_in(server, o->server, detail);
    if (err != HF_OK)
        return err;
    if (server->url != NULL || o->on_event != NULL || o->arg != NULL || o->minder != NULL)
        return hf_say(detail, HF_INVALID,
                      "expected no url, on_event, arg and minder: the URLs are in "
                      "`urls`, and a set has its own events");
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
            return hf_say(detail, err, "server %zu of %zu: %s", i + 1, servers->n,
                          urls[i] == NULL ? "expected a URL" : why);
        for (size_t k = 0; k < i; k++)
            if (strcmp(servers->places[k], servers->places[i]) == 0)
                return hf_say(detail, HF_INVALID,
                              "expected each server once, found %.150s twice",
                              servers->places[i]);
    }
    return HF_OK;
}

/* Before any other thread runs the loop. */
static hf_err open_clients(hf_lock_servers *servers, const char *const *urls,
                           const hf_lock_client_opts *opts, const hf_server_opts *server,
                           hf_watch_loop *watch, char *detail)
{
    char why[HF_DETAIL_SIZE] = "";
    hf_lock_client_opts one = *opts;
    hf_server_opts here = *server;
    one.server = &here;
    size_t n = servers->n;
    hf_err err = HF_OK;
    one.loop = servers->tasks.run.uv;
    for (servers->n = 0; servers->n < n && err == HF_OK; servers->n += err == HF_OK) {
        here.url = urls[servers->n];
        err = hf_lock_client_open_on(&servers->clients[servers->n], &one, watch, why);
    }
    if (err != HF_OK)
        return hf_say(detail, err, "%.120s: %.120s", servers->places[servers->n], why);
    return HF_OK;
}

/* One thread renews the leases of all of them. */
static hf_err open_watched(hf_lock_servers *servers, const char *const *urls,
                           const hf_lock_client_opts *opts, const hf_server_opts *server,
                           char *detail)
{
    hf_watch_loop *watch;
    hf_err err = hf_watch_loop_open(&watch);
    if (err != HF_OK) {
        servers->n = 0;
        return hf_say_err(detail, err);
    }
    err = open_clients(servers, urls, opts, server, watch, detail);
    if (err == HF_OK && (err = hf_watch_loop_start(watch)) != HF_OK)
        (void)hf_say_err(detail, err);
    hf_watch_loop_unref(watch); /* each client has a reference */
    return err;
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
        return hf_say_err(detail, HF_NOMEM);
    servers->n = n;
    servers->connect_timeout_ms = server.connect_timeout_ms;
    servers->request_timeout_ms = server.request_timeout_ms;
    err = set_places(servers, urls, detail);
    if (err != HF_OK) {
        free(servers);
        return err;
    }
    err = hf_random_bytes(&servers->rng.state, sizeof servers->rng.state);
    if (err == HF_OK)
        err = hf_tasks_open(&servers->tasks, opts->loop, &hooks, servers);
    if (err != HF_OK) {
        free(servers);
        return hf_say_err(detail, err);
    }
    err = open_watched(servers, urls, opts, &server, detail);
    /* Work of the clients outside of calls belongs to no caller. */
    hf_run_loop_background(&servers->tasks.run, 1);
    hf_err started = hf_tasks_start(&servers->tasks);
    if (err == HF_OK && started != HF_OK)
        err = hf_say_err(detail, started);
    if (err == HF_OK)
        *out = servers;
    else
        hf_lock_servers_close(servers, NULL, NULL);
    return err;
}
