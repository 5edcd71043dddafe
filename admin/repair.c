/* repair.c - what is outside of the queues: names that the registry lacks, workers
 * that went without a word, and how far away Redis is. */
#include "holdfast/admin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin/ask.h"
#include "admin/names.h"
#include "admin/registry.h"
#include "admin/remove.h"
#include "base/base.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/mask.h"
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
    hf_err err = hf_send_script_status(answer, 4, &now_ms);
    if (err != HF_OK)
        return err;
    (void)snprintf(s->cursor, CURSOR_SIZE, "%s",
                   hf_reply_text(hf_reply_at(answer->reply, 2)));
    const hf_reply *names = hf_reply_at(answer->reply, 3);
    for (size_t i = 0; i < hf_reply_len(names); i++)
        hf_names_add(&s->names, hf_reply_text(hf_reply_at(names, i)));
    return hf_buf_err(&s->names.text);
}

/* Of keys that this prefix is on one node with; NULL: that of the registry. */
static hf_err ask_strays(hf_admin *admin, const char *prefix, strays *s)
{
    hf_ask ask = {.script = &hf_lua_queue_registry,
                  .prefix = prefix,
                  .read = read_strays,
                  .out = s};
    hf_args_text(&ask.args, admin->ns);
    hf_args_text(&ask.args, s->cursor);
    return hf_admin_ask(admin, &ask);
}

static hf_err find_strays(hf_admin *admin, const char *prefix, strays *s)
{
    hf_err err;
    (void)snprintf(s->cursor, CURSOR_SIZE, "0");
    do
        err = ask_strays(admin, prefix, s);
    while (err == HF_OK && strcmp(s->cursor, "0") != 0);
    return err;
}

/* On this node there is no registry under that prefix, so all queues with keys here are
 * found. */
static hf_err find_here(hf_admin *admin, void *arg)
{
    char prefix[HF_KEY_SIZE];
    unsigned tag = 0;
    hf_cluster_key(admin->nodes.cluster, admin->here->redis, admin->ns, "", &tag, prefix,
                   sizeof prefix);
    return prefix[0] == '\0' ? HF_OK : find_strays(admin, prefix, arg);
}

static bool is_listed(const char *name, char *const *listed, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(name, listed[i]) == 0)
            return true;
    return false;
}

/* What was removed may have keys until they end by themselves. */
static bool was_removed(hf_admin *admin, const hf_queue *queue)
{
    hf_holdings found;
    return hf_holdings_of(admin, queue, &found) == HF_OK && hf_holdings_none(&found);
}

/* Leaves those that the registry lacks. */
static hf_err keep_strays(hf_admin *admin, bool fix, char **names, size_t *n)
{
    char **listed = NULL;
    size_t n_listed = 0, left = 0;
    hf_err err = hf_admin_queues(admin, &listed, &n_listed, admin->detail);
    const bool broken = err == HF_REDIS; /* it is no set: hf_admin_queues() says so */
    for (size_t i = 0; (err == HF_OK || broken) && i < *n; i++) {
        hf_queue queue;
        const bool good = hf_queue_init(&queue, admin->ns, names[i]) == HF_OK;
        if (is_listed(names[i], listed, n_listed) || (good && was_removed(admin, &queue)))
            continue;
        names[left++] = names[i];
        if (fix && good && !broken)
            err = hf_registry_add(admin, &queue);
    }
    free(listed);
    *n = left;
    return broken ? HF_OK : err;
}

static hf_err find_all(hf_admin *admin, strays *s)
{
    return hf_cluster_is_plain(admin->nodes.cluster)
               ? find_strays(admin, NULL, s)
               : hf_admin_each_node(admin, find_here, s);
}

hf_err hf_admin_unregistered(hf_admin *admin, bool fix, char ***names, size_t *n,
                             char detail[HF_DETAIL_SIZE])
{
    strays s = {.cursor = "0"};
    hf_names_init(&s.names);
    hf_admin_begin(admin, detail);
    hf_err err = find_all(admin, &s);
    if (err == HF_OK && (err = hf_registry_names(admin, false, &s.names)) == HF_REDIS)
        err = HF_OK; /* it is no set: hf_admin_queues() says so */
    if (err != HF_OK) {
        hf_names_done(&s.names);
        return err;
    }
    err = hf_names_take(&s.names, names, n);
    if (err != HF_OK)
        return hf_admin_fail(admin, err, "%s", hf_err_text(err));
    err = keep_strays(admin, fix, *names, n);
    if (err != HF_OK)
        free(*names);
    return err;
}

/* ---- workers ---- */

static hf_err read_forgotten(const hf_answer *answer, void *out)
{
    int64_t now_ms;
    hf_err err = hf_send_script_status(answer, 3, &now_ms);
    if (err == HF_OK)
        *(bool *)out = hf_reply_int(hf_reply_at(answer->reply, 2)) != 0;
    return err;
}

hf_err hf_admin_forget(hf_admin *admin, const char *worker, char detail[HF_DETAIL_SIZE])
{
    bool forgotten = false;
    hf_ask ask = {
        .script = &hf_lua_queue_forget, .read = read_forgotten, .out = &forgotten};
    hf_admin_begin(admin, detail);
    if (worker == NULL || !hf_name_ok(worker) || strlen(worker) >= HF_WORKER_ID_SIZE)
        return hf_admin_fail(admin, HF_INVALID, "expected a worker's id, found '%s'",
                             HF_FOUND(worker == NULL ? "" : worker));
    hf_ask_order(&ask, admin);
    hf_args_text(&ask.args, worker);
    hf_args_int(&ask.args, ask.time.not_after);
    hf_err err = hf_admin_ask(admin, &ask);
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
    trip t = {.sent_ns = 0};
    hf_round_trip out = {HF_ROUND_TRIP_INIT};
    hf_admin_begin(admin, detail);
    hf_err err = hf_admin_fits(admin, theirs, "hf_round_trip");
    if (err != HF_OK)
        return err;
    for (int i = 0; i < ROUND_TRIPS && err == HF_OK; i++) {
        hf_ask ask = {.read = read_trip, .out = &t};
        hf_args_text(&ask.args, "TIME");
        err = hf_admin_ask(admin, &ask);
        int64_t took_us = (int64_t)((t.read_ns - t.sent_ns) / 1000);
        if (err != HF_OK || (i > 0 && took_us >= out.took_us))
            continue;
        /* It said the time somewhere on the way; half-way is at most half of it wrong. */
        out = (hf_round_trip){HF_ROUND_TRIP_INIT, .took_us = took_us,
                              .ahead_us = t.redis_us - (t.wall_us - took_us / 2),
                              .unsure_us = took_us / 2 + 1};
    }
    hf_struct_fill(theirs, &out, sizeof out);
    return err;
}
