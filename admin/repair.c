/* repair.c - what is outside of the queues: names that the registry lacks, workers
 * that went without a word, and how far away Redis is. */
#include "holdfast/admin.h"

#include <stdio.h>
#include <string.h>

#include "admin/ask.h"
#include "admin/names.h"
#include "admin/order.h"
#include "base/base.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/structs.h"
#include "queue/keys.h"
#include "queue/send.h"
#include "queue_scripts.h"

enum { CURSOR_SIZE = 32, ROUND_TRIPS = 5 };

/* ---- names that are not registered ---- */

typedef struct strays {
    char cursor[CURSOR_SIZE];
    hf_names names;
} strays;

static hf_err read_strays(const hf_answer *answer, void *out)
{
    strays *s = out;
    int64_t now_ms;
    hf_err err = hf_script_status(answer, 4, &now_ms);
    if (err != HF_OK)
        return err;
    (void)snprintf(s->cursor, CURSOR_SIZE, "%s",
                   hf_reply_text(hf_reply_at(answer->reply, 2)));
    const hf_reply *names = hf_reply_at(answer->reply, 3);
    for (size_t i = 0; i < hf_reply_len(names); i++)
        hf_names_add(&s->names, hf_reply_text(hf_reply_at(names, i)));
    return hf_buf_err(&s->names.text);
}

static hf_err ask_strays(hf_admin *admin, bool fix, strays *s)
{
    char registry[HF_KEY_SIZE];
    hf_order order = {.admin = admin, .looks_only = !fix};
    hf_err err = hf_order_begin(&order, 4, 1);
    if (err != HF_OK)
        return err;
    hf_key_registry(registry, admin->ns);
    hf_args_text(&order.args, admin->ns);
    hf_args_text(&order.args, s->cursor);
    hf_args_flag(&order.args, fix);
    hf_args_int(&order.args, order.time.not_after);
    const hf_bytes key = {registry, strlen(registry)};
    const hf_ask ask = {.script = &hf_lua_queue_registry,
                        .keys = &key,
                        .n_keys = 1,
                        .read = read_strays,
                        .out = s};
    return hf_order_send(&order, &ask);
}

hf_err hf_admin_unregistered(hf_admin *admin, bool fix, char ***names, size_t *n,
                             char detail[HF_DETAIL_SIZE])
{
    strays s = {.cursor = "0"};
    hf_names_init(&s.names);
    hf_admin_begin(admin, detail);
    hf_err err;
    do
        err = ask_strays(admin, fix, &s);
    while (err == HF_OK && strcmp(s.cursor, "0") != 0);
    if (err != HF_OK) {
        hf_names_done(&s.names);
        return err;
    }
    err = hf_names_take(&s.names, names, n);
    return err == HF_OK ? err : hf_admin_fail(admin, err, "%s", hf_err_text(err));
}

/* ---- workers ---- */

static hf_err read_forgotten(const hf_answer *answer, void *out)
{
    int64_t now_ms;
    hf_err err = hf_script_status(answer, 3, &now_ms);
    if (err == HF_OK)
        *(bool *)out = hf_reply_int(hf_reply_at(answer->reply, 2)) != 0;
    return err;
}

hf_err hf_admin_forget(hf_admin *admin, const char *worker, char detail[HF_DETAIL_SIZE])
{
    bool forgotten = false;
    char registry[HF_KEY_SIZE];
    hf_order order = {.admin = admin};
    hf_admin_begin(admin, detail);
    if (worker == NULL || !hf_name_ok(worker) || strlen(worker) >= HF_WORKER_ID_SIZE)
        return hf_admin_fail(admin, HF_INVALID, "expected a worker's id, found '%.120s'",
                             worker == NULL ? "" : worker);
    hf_err err = hf_order_begin(&order, 2, 1);
    if (err != HF_OK)
        return err;
    hf_key_registry(registry, admin->ns);
    const hf_bytes key = {registry, strlen(registry)};
    hf_args_text(&order.args, worker);
    hf_args_int(&order.args, order.time.not_after);
    const hf_ask ask = {.script = &hf_lua_queue_forget,
                        .keys = &key,
                        .n_keys = 1,
                        .read = read_forgotten,
                        .out = &forgotten};
    err = hf_order_send(&order, &ask);
    return err != HF_OK || forgotten ? err
                                     : hf_admin_fail(admin, HF_GONE, "it is not silent");
}

/* ---- the clock ---- */

typedef struct trip {
    uint64_t sent_ns, read_ns;
    int64_t wall_us;  /* this host's clock when it was read */
    int64_t redis_us; /* Redis's */
} trip;

static hf_err read_trip(const hf_answer *answer, void *out)
{
    trip *t = out;
    t->read_ns = hf_boot_ns();
    t->wall_us = hf_wall_us();
    t->sent_ns = answer->sent_ns;
    if (hf_reply_len(answer->reply) != 2)
        return HF_PROTO;
    t->redis_us = hf_reply_int(hf_reply_at(answer->reply, 0)) * 1000000 +
                  hf_reply_int(hf_reply_at(answer->reply, 1));
    return HF_OK;
}

hf_err hf_admin_round_trip(hf_admin *admin, hf_round_trip *theirs,
                           char detail[HF_DETAIL_SIZE])
{
    hf_args args;
    trip t = {.sent_ns = 0};
    hf_round_trip out = {HF_ROUND_TRIP_INIT};
    hf_admin_begin(admin, detail);
    hf_err err = hf_admin_fits(admin, theirs, "hf_round_trip");
    if (err != HF_OK)
        return err;
    if (!hf_args_init(&args, 1, 0))
        return hf_admin_no_memory(admin);
    hf_args_text(&args, "TIME");
    const hf_ask ask = {.args = &args, .read = read_trip, .out = &t};
    for (int i = 0; i < ROUND_TRIPS && err == HF_OK; i++) {
        err = hf_admin_ask(admin, &ask, hf_admin_until(admin));
        int64_t took_us = (int64_t)((t.read_ns - t.sent_ns) / 1000);
        if (err != HF_OK || (i > 0 && took_us >= out.took_us))
            continue;
        /* It said the time somewhere on the way; half-way is at most half of it wrong. */
        out = (hf_round_trip){HF_ROUND_TRIP_INIT, .took_us = took_us,
                              .ahead_us = t.redis_us - (t.wall_us - took_us / 2),
                              .unsure_us = took_us / 2 + 1};
    }
    hf_args_done(&args);
    hf_struct_fill(theirs, &out, sizeof out);
    return err;
}
