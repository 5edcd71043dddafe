/* admin.c - the life of an hf_admin, and how it asks (admin/ask.h).
 *
 * Nothing here is a second way to talk to Redis: it is the asynchronous client, on a run
 * loop that only turns inside of a call. */
#include "holdfast/admin.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin/ask.h"
#include "base/base.h"
#include "base/clock.h"
#include "base/detail.h"
#include "base/server_opts.h"
#include "base/structs.h"

enum {
    DEADLINE_MS = 5000,
    REQUEST_MS =
        1000, /* after which a silent connection is given up and a new one asked */
    STOOD_STILL_MS = 1000, /* between two calls the loop does not turn */
    NOSCRIPT_TRIES = 3,
    RETRY_MS = 20
};

typedef struct waiting {
    hf_admin *admin;
    const hf_ask *ask;
    hf_run_waiter run;
    hf_err err;
} waiting;

void hf_admin_begin(hf_admin *admin, char detail[HF_DETAIL_SIZE])
{
    admin->detail = detail != NULL ? detail : admin->unread;
    admin->detail[0] = '\0';
}

hf_err hf_admin_fail(hf_admin *admin, hf_err err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(admin->detail, HF_DETAIL_SIZE, format, args);
    va_end(args);
    return err;
}

hf_err hf_admin_no_memory(hf_admin *admin)
{
    return hf_admin_fail(admin, HF_NOMEM, "%s", hf_err_text(HF_NOMEM));
}

hf_err hf_admin_queue(hf_admin *admin, const char *name, hf_queue *out)
{
    if (name == NULL || hf_queue_init(out, admin->ns, name) != HF_OK)
        return hf_admin_fail(admin, HF_INVALID, "expected a queue's name, found '%s'",
                             name == NULL ? "" : name);
    return HF_OK;
}

/* ---- the loop ---- */

static uint32_t left_ms(uint64_t until_ns)
{
    uint64_t now = hf_boot_ns();
    if (now >= until_ns)
        return 0;
    uint64_t left = (until_ns - now + HF_MS_NS - 1) / HF_MS_NS;
    return left > UINT32_MAX ? UINT32_MAX : (uint32_t)left;
}

static void on_event(hf_client *client, hf_err err, const char *detail, void *arg)
{
    hf_admin *admin = arg;
    hf_run_waiter *waiter = admin->waits_ready;
    (void)detail;
    if (waiter == NULL || (err != HF_OK && !hf_client_is_refused(client)))
        return;
    admin->waits_ready = NULL;
    hf_run_loop_done(&admin->run, waiter);
}

void hf_admin_idle(hf_admin *admin, uint64_t until_ns)
{
    hf_run_waiter waiter = {.again_ms = 0};
    (void)hf_run_loop_await(&admin->run, &waiter, until_ns);
}

static hf_err wait_ready(hf_admin *admin, uint64_t until_ns)
{
    hf_run_waiter waiter = {.again_ms = 0};
    if (hf_boot_ns() - admin->turned_ns > STOOD_STILL_MS * HF_MS_NS)
        hf_client_stood_still(admin->client);
    if (!hf_client_ready(admin->client)) {
        admin->waits_ready = &waiter;
        (void)hf_run_loop_await(&admin->run, &waiter, until_ns);
        admin->waits_ready = NULL;
    }
    if (hf_client_ready(admin->client)) {
        admin->turned_ns = hf_boot_ns();
        return HF_OK;
    }
    hf_err err = hf_client_status(admin->client);
    return hf_admin_fail(admin, err == HF_OK ? HF_CONN : err, "%s",
                         hf_client_detail(admin->client));
}

/* ---- asking ---- */

uint64_t hf_admin_until(const hf_admin *admin)
{
    return hf_boot_ns() + admin->deadline_ms * HF_MS_NS;
}

static void on_answer(const hf_answer *answer, void *arg)
{
    waiting *w = arg;
    w->err = answer->err == HF_OK ? w->ask->read(answer, w->ask->out) : answer->err;
    if (answer->err != HF_OK)
        (void)hf_admin_fail(w->admin, w->err, "%s", answer->detail);
    else if (w->err != HF_OK)
        (void)hf_admin_fail(w->admin, w->err, "%s", hf_err_text(w->err));
    hf_run_loop_done(&w->admin->run, &w->run);
}

static hf_err ask_one(hf_admin *admin, const hf_ask *ask, uint64_t until_ns)
{
    hf_err err = wait_ready(admin, until_ns);
    if (err != HF_OK)
        return err;
    uint32_t left = left_ms(until_ns);
    if (left == 0)
        return hf_admin_fail(admin, HF_TIMEOUT, "the deadline passed before it was sent");
    waiting w = {.admin = admin, .ask = ask, .run.submits = true};
    hf_bytes key = {NULL, 0};
    if (ask->queue != NULL)
        key = (hf_bytes){ask->queue->prefix, ask->queue->prefix_len};
    const hf_call call = {.script = ask->script,
                          .keys = ask->keys != NULL ? ask->keys : &key,
                          .n_keys = ask->script == NULL ? 0
                                    : ask->keys != NULL ? ask->n_keys
                                                        : 1,
                          .args = ask->args->at,
                          .n_args = ask->args->n,
                          .timeout_ms =
                              ask->once || left < REQUEST_MS ? left : REQUEST_MS,
                          .cb = on_answer,
                          .arg = &w};
    err = hf_redis_call(admin->client, &call);
    if (err != HF_OK)
        return hf_admin_fail(admin, err, "%s", hf_err_text(err));
    /* The client answers each request by its time-out. */
    HF_ASSERT(hf_run_loop_await(&admin->run, &w.run, UINT64_MAX));
    admin->turned_ns = hf_boot_ns();
    return w.err;
}

/* A script that came too late did nothing; but an earlier try may have. */
static hf_err late(hf_admin *admin, bool unsure)
{
    return hf_admin_fail(admin, unsure ? HF_UNSURE : HF_TIMEOUT,
                         "it reached Redis after the deadline");
}

hf_err hf_admin_ask(hf_admin *admin, const hf_ask *ask, uint64_t until_ns)
{
    bool unsure = false;
    for (int unknown = 0;;) {
        hf_err err = ask_one(admin, ask, until_ns);
        if (err == HF_NOSCRIPT && ++unknown < NOSCRIPT_TRIES)
            continue;
        if (err == HF_DEADLINE)
            return late(admin, unsure);
        unsure = unsure || err == HF_UNSURE;
        bool nothing = err == HF_CONN || err == HF_LOADING || err == HF_BUSY_SCRIPT;
        bool again = nothing || (err == HF_UNSURE && !ask->once);
        if (!again || left_ms(until_ns) == 0)
            return unsure && ask->writes && (nothing || err == HF_TIMEOUT) ? HF_UNSURE
                                                                           : err;
        if (unsure && ask->doubt != NULL)
            *ask->doubt = true;
        uint64_t pause = hf_boot_ns() + RETRY_MS * HF_MS_NS;
        hf_admin_idle(admin, pause < until_ns ? pause : until_ns);
    }
}

/* ---- Redis's clock ---- */

typedef struct moment {
    int64_t ms;
    uint64_t read_ns;
} moment;

static hf_err read_time(const hf_answer *answer, void *out)
{
    moment *m = out;
    m->read_ns = hf_boot_ns();
    return hf_time_read(answer, &m->ms);
}

hf_err hf_admin_clock(hf_admin *admin, uint64_t until_ns, hf_admin_time *out)
{
    hf_args args;
    moment m = {0, 0};
    if (!hf_args_init(&args, 1, 0))
        return hf_admin_no_memory(admin);
    hf_args_text(&args, "TIME");
    const hf_ask ask = {.args = &args, .read = read_time, .out = &m};
    hf_err err = hf_admin_ask(admin, &ask, until_ns);
    hf_args_done(&args);
    int64_t left =
        until_ns > m.read_ns ? (int64_t)((until_ns - m.read_ns) / HF_MS_NS) : 0;
    if (err == HF_OK)
        *out = (hf_admin_time){.now_ms = m.ms, .not_after = m.ms + left};
    return err;
}

/* ---- life ---- */

void hf_admin_close(hf_admin *admin)
{
    if (admin == NULL)
        return;
    hf_client_close(admin->client, NULL, NULL);
    hf_server_close(admin->redis);
    hf_run_loop_close(&admin->run);
    free(admin);
}

static void flush(void *arg)
{
    const hf_admin *admin = arg;
    hf_redis_flush(admin->client);
}

static void submit(void *arg)
{
    (void)arg; /* a call sends its request itself, before it waits */
}

static const hf_run_hooks hooks = {submit, flush, NULL};

static hf_err start(hf_admin *admin, const hf_server_opts *server)
{
    hf_err err = hf_server_open(&admin->redis, server, admin->detail);
    if (err != HF_OK)
        return err;
    const hf_client_opts client = {.loop = admin->run.uv,
                                   .redis = admin->redis,
                                   .replica_ok = true,
                                   .on_event = on_event,
                                   .arg = admin};
    err = hf_client_open(&admin->client, &client, admin->detail);
    if (err != HF_OK)
        return err;
    return wait_ready(admin, hf_boot_ns() + server->connect_timeout_ms * HF_MS_NS);
}

hf_err hf_admin_open(hf_admin **out, const hf_admin_opts *theirs,
                     char detail[HF_DETAIL_SIZE])
{
    hf_admin_opts opts;
    hf_server_opts server;
    hf_err err = hf_struct_in(&opts, sizeof opts, theirs, "hf_admin_opts", detail);
    if (err == HF_OK)
        err = hf_server_opts_in(&server, opts.server, detail);
    if (err != HF_OK)
        return err;
    hf_admin *admin = calloc(1, sizeof *admin);
    if (admin == NULL)
        return hf_say_err(detail, HF_NOMEM);
    if (hf_run_loop_open(&admin->run, NULL, &hooks, admin) != HF_OK) {
        free(admin);
        return hf_say(detail, HF_SYSTEM, "no event loop could be made");
    }
    hf_admin_begin(admin, detail);
    admin->deadline_ms = opts.deadline_ms != 0 ? opts.deadline_ms : DEADLINE_MS;
    memcpy(admin->ns, server.ns, strlen(server.ns));
    err = start(admin, &server);
    if (err != HF_OK) {
        hf_admin_close(admin);
        return err;
    }
    *out = admin;
    return HF_OK;
}

hf_err hf_admin_fits(hf_admin *admin, const void *theirs, const char *name)
{
    return hf_struct_can_fill(theirs, name, admin->detail);
}

const hf_server_info *hf_admin_server(const hf_admin *admin)
{
    return hf_client_server(admin->client);
}
