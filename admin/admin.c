/* admin.c - the life of an hf_admin, and how it asks (admin/ask.h).
 *
 * Nothing here is a second way to talk to Redis: it is the asynchronous client, on a run
 * loop that only turns inside of a call. */
#include "holdfast/admin.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin/parts.h"
#include "base/backoff.h"
#include "base/base.h"
#include "base/clock.h"
#include "base/detail.h"
#include "base/mask.h"
#include "base/server_opts.h"
#include "base/structs.h"
#include "queue/keys.h"
#include "redis/err.h"
#include "redis/info.h"
#include "redis/plain.h"
#include "redis/send.h"

enum {
    DEADLINE_MS = 5000,
    REQUEST_MS =
        1000, /* after which a silent connection is given up and a new one asked */
    STOOD_STILL_MS = 1000, /* between two calls the loop does not turn */
    NOSCRIPT_TRIES = 3,
    RETRY_MS = 20,
    NODES_MAX = HF_NODES_MAX
};

/* Before a request that did nothing is made again. */
static const hf_backoff pauses = {
    .shape = HF_SHAPE_EXPONENTIAL, .base_ms = RETRY_MS, .cap_ms = 500, .jitter = 0.25};

typedef struct waiting {
    hf_admin *admin;
    const hf_ask *ask;
    hf_node *node;
    hf_node_backoff *backoff;
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
    err = hf_say_args(admin->detail, err, format, args);
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
                             HF_FOUND(name == NULL ? "" : name));
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

static void wake(hf_admin *admin)
{
    hf_run_waiter *waiter = admin->waits_ready;
    admin->waits_ready = NULL;
    if (waiter != NULL)
        hf_run_loop_done(&admin->run, waiter);
}

void hf_admin_idle(hf_admin *admin, uint64_t until_ns)
{
    hf_run_waiter waiter = {.again_ms = 0};
    (void)hf_run_loop_await(&admin->run, &waiter, until_ns);
}

/* ---- the nodes ---- */

static hf_admin_node *node_of(hf_node *base)
{
    return HF_CONTAINER(base, hf_admin_node, base);
}

static hf_err on_open(hf_node *base)
{
    node_of(base)->turned_ns = hf_boot_ns();
    return HF_OK;
}

static void on_event(hf_node *base, hf_err err, const char *detail)
{
    (void)detail;
    if (err == HF_OK || hf_client_is_refused(base->client))
        wake(base->nodes->opts.owner);
}

static void on_change(void *owner)
{
    wake(owner);
}

static bool needs(void *owner, const hf_node *base)
{
    const hf_admin *admin = owner;
    return base == admin->here || hf_cluster_has_slots(admin->nodes.cluster, base->redis);
}

static const hf_nodes_hooks nodes_hooks = {
    .on_open = on_open, .on_event = on_event, .on_change = on_change, .needs = needs};

static hf_node *find_node(hf_admin *admin, unsigned slot)
{
    hf_nodes_tidy(&admin->nodes);
    return hf_nodes_find(&admin->nodes, slot);
}

/* For a reason that waiting does not change. */
static bool is_refused(const hf_node *node)
{
    return node->client != NULL ? hf_client_is_refused(node->client)
                                : hf_nodes_are_refused(node->nodes);
}

static hf_err why_not(hf_admin *admin, const hf_node *node)
{
    char why[HF_DETAIL_SIZE];
    hf_err err = hf_node_status(node, why);
    return hf_admin_fail(admin, err == HF_OK ? HF_CONN : err, "%s", why);
}

/* It may be the first since a connection was opened, whose timer the loop does not know:
 * `submits` makes it look. */
static void wait_for_news(hf_admin *admin, uint64_t until_ns)
{
    hf_run_waiter waiter = {.submits = true};
    admin->waits_ready = &waiter;
    (void)hf_run_loop_await(&admin->run, &waiter, until_ns);
    admin->waits_ready = NULL;
}

static void look_after(hf_node *base)
{
    if (hf_boot_ns() - node_of(base)->turned_ns > STOOD_STILL_MS * HF_MS_NS)
        hf_client_stood_still(base->client);
}

/* A node of a cluster whose table is wrong is waited for in vain: each time the table has
 * changed, it is looked at again. */
static hf_err wait_ready(hf_admin *admin, unsigned slot, uint64_t until_ns, hf_node **out)
{
    for (bool waited = false;; waited = true) {
        hf_node *node = admin->here != NULL ? admin->here : find_node(admin, slot);
        if (node->client != NULL && !waited)
            look_after(node);
        if (node->client != NULL && hf_client_ready(node->client)) {
            node_of(node)->turned_ns = hf_boot_ns();
            *out = node;
            return HF_OK;
        }
        if (left_ms(until_ns) == 0 || (waited && is_refused(node)))
            return why_not(admin, node);
        wait_for_news(admin, until_ns);
    }
}

hf_err hf_admin_each_node(hf_admin *admin, hf_err (*fn)(hf_admin *admin, void *arg),
                          void *arg)
{
    hf_server *all[NODES_MAX];
    hf_err err = HF_OK;
    size_t n = hf_cluster_servers(admin->nodes.cluster, all, NODES_MAX);
    if (n > NODES_MAX) {
        (void)hf_admin_fail(admin, HF_TOOBIG, "the cluster has more than %d nodes",
                            NODES_MAX);
        err = HF_TOOBIG;
        n = NODES_MAX;
    }
    for (size_t i = 0; i < n; i++) {
        if (err == HF_OK) {
            admin->here = hf_nodes_at(&admin->nodes, all[i]);
            err = admin->here == admin->nodes.away ? hf_admin_no_memory(admin)
                                                   : fn(admin, arg);
        }
        admin->here = NULL;
        hf_server_close(all[i]);
    }
    return err;
}

const char *hf_admin_place(hf_admin *admin, const hf_queue *queue)
{
    if (hf_cluster_is_plain(admin->nodes.cluster))
        return NULL;
    const hf_node *node = find_node(admin, hf_slot(queue->prefix, queue->prefix_len));
    return node == admin->nodes.away ? NULL : node->redis->place;
}

hf_server *hf_admin_server_of(hf_admin *admin, const hf_queue *queue)
{
    return hf_cluster_server(admin->nodes.cluster,
                             hf_slot(queue->prefix, queue->prefix_len));
}

/* ---- asking ---- */

uint64_t hf_admin_until(const hf_admin *admin)
{
    return hf_boot_ns() + admin->deadline_ms * HF_MS_NS;
}

static hf_err read_answer(const hf_ask *ask, const hf_answer *answer)
{
    int64_t now_ms;
    if (ask->read != NULL)
        return ask->read(answer, ask->out);
    return ask->script == NULL ? HF_OK : hf_send_script_status(answer, 2, &now_ms);
}

static void on_answer(const hf_answer *answer, void *arg)
{
    waiting *w = arg;
    w->err = answer->err == HF_OK ? read_answer(w->ask, answer) : answer->err;
    if (w->err == HF_SHARDED &&
        hf_shards_refused(&w->admin->shards, answer->detail) != HF_OK)
        w->err = HF_PROTO;
    (void)hf_node_answered(w->node, w->backoff, answer);
    if (answer->err != HF_OK)
        (void)hf_admin_fail(w->admin, w->err, "%s", answer->detail);
    else if (w->err != HF_OK)
        (void)hf_admin_fail(w->admin, w->err, "%s", hf_err_text(w->err));
    hf_run_loop_done(&w->admin->run, &w->run);
}

/* The key of a script, which tells the node of any request. */
static hf_bytes key_of(const hf_admin *admin, const hf_ask *ask,
                       char registry[HF_KEY_SIZE])
{
    if (ask->prefix != NULL)
        return (hf_bytes){ask->prefix, strlen(ask->prefix)};
    if (ask->queue != NULL)
        return (hf_bytes){ask->queue->prefix, ask->queue->prefix_len};
    hf_key_registry(registry, admin->ns);
    return (hf_bytes){registry, strlen(registry)};
}

static hf_err ask_one(hf_admin *admin, const hf_ask *ask, uint64_t until_ns,
                      hf_node_backoff *backoff)
{
    hf_node *node;
    char registry[HF_KEY_SIZE];
    const hf_bytes key = key_of(admin, ask, registry);
    hf_err err = wait_ready(admin, hf_slot(key.ptr, key.len), until_ns, &node);
    if (err != HF_OK)
        return err;
    uint32_t left = left_ms(until_ns);
    if (left == 0)
        return hf_admin_fail(admin, HF_TIMEOUT, "the deadline passed before it was sent");
    waiting w = {.admin = admin,
                 .ask = ask,
                 .node = node,
                 .backoff = backoff,
                 .run.submits = true};
    const hf_call call = {.script = ask->script,
                          .keys = &key,
                          .n_keys = ask->script == NULL ? 0 : 1,
                          .args = ask->args.at,
                          .n_args = ask->args.n,
                          .timeout_ms = left < REQUEST_MS ? left : REQUEST_MS,
                          .cb = on_answer,
                          .arg = &w};
    err = hf_request_send(node->client, &call);
    if (err != HF_OK)
        return hf_admin_fail(admin, err, "%s", hf_err_text(err));
    /* The client answers each request by its time-out. */
    HF_ASSERT(hf_run_loop_await(&admin->run, &w.run, UINT64_MAX));
    node_of(node)->turned_ns = hf_boot_ns();
    return w.err;
}

/* ---- asking ahead ---- */

typedef struct ahead {
    hf_admin *admin;
    hf_ask *ask;
    hf_node *node;
    hf_node_backoff backoff;
    size_t *left; /* answers that are missing yet */
    hf_run_waiter *run;
} ahead;

static void on_ahead(const hf_answer *answer, void *arg)
{
    ahead *a = arg;
    a->ask->err = answer->err == HF_OK ? read_answer(a->ask, answer) : answer->err;
    (void)hf_node_answered(a->node, &a->backoff, answer);
    if (--*a->left == 0)
        hf_run_loop_done(&a->admin->run, a->run);
}

static hf_err send_ahead(ahead *a, uint64_t until_ns)
{
    char registry[HF_KEY_SIZE];
    const hf_bytes key = key_of(a->admin, a->ask, registry);
    const hf_call call = {.script = a->ask->script,
                          .keys = &key,
                          .n_keys = 1,
                          .args = a->ask->args.at,
                          .n_args = a->ask->args.n,
                          .timeout_ms = REQUEST_MS,
                          .cb = on_ahead,
                          .arg = a};
    hf_err err = wait_ready(a->admin, hf_slot(key.ptr, key.len), until_ns, &a->node);
    return err == HF_OK ? hf_request_send(a->node->client, &call) : err;
}

/* After the first that cannot be sent no other is: a node that is away is waited for
 * once. */
void hf_admin_ask_ahead(hf_admin *admin, hf_ask *asks, size_t n)
{
    ahead all[HF_ADMIN_AHEAD];
    hf_run_waiter run = {.submits = true};
    hf_err err = HF_OK;
    size_t left = 1; /* none is the last before all were sent */
    const uint64_t until_ns = hf_admin_until(admin);
    HF_ASSERT(n <= HF_ADMIN_AHEAD);
    for (size_t i = 0; i < n; i++) {
        all[i] = (ahead){.admin = admin, .ask = &asks[i], .left = &left, .run = &run};
        err = err == HF_OK ? send_ahead(&all[i], until_ns) : err;
        asks[i].err = err;
        left += err == HF_OK;
    }
    if (--left > 0)
        HF_ASSERT(hf_run_loop_await(&admin->run, &run, UINT64_MAX));
    for (size_t i = 0; i < n; i++)
        hf_args_done(&asks[i].args);
}

/* ---- until the deadline ---- */

/* A script that came too late did nothing; but an earlier try may have. */
static hf_err late(hf_admin *admin, bool unsure)
{
    return hf_admin_fail(admin, unsure ? HF_UNSURE : HF_TIMEOUT,
                         "it reached Redis after the deadline");
}

/* Which queue, and what its node has answered. */
static hf_err unserved(hf_admin *admin, const hf_ask *ask, const char *why)
{
    char said[HF_DETAIL_SIZE] = "";
    if (strcmp(why, hf_err_text(HF_UNSERVED)) != 0)
        (void)snprintf(said, sizeof said, ": %.*s", HF_DETAIL_SIZE - 3, why);
    return hf_admin_fail(admin, HF_UNSERVED, "%s%s%s",
                         ask->queue == NULL ? "the list of queues" : "queue ",
                         ask->queue == NULL ? "" : ask->queue->name, said);
}

static hf_err ask_until(hf_admin *admin, const hf_ask *ask, uint64_t until_ns)
{
    bool unsure = false, refused = false;
    char why[HF_DETAIL_SIZE];
    uint32_t tries = 0;
    hf_node_backoff backoff = {.refusals = 0};
    for (int unknown = 0;;) {
        bool last =
            refused && hf_boot_ns() >= until_ns - RETRY_MS * HF_MS_NS; /* see below */
        hf_err err = ask_one(admin, ask, until_ns, &backoff);
        if (err == HF_NOSCRIPT && ++unknown < NOSCRIPT_TRIES)
            continue;
        if (err == HF_DEADLINE)
            return late(admin, unsure);
        unsure = unsure || err == HF_UNSURE;
        bool backs_off = hf_err_is(err, HF_ERR_OF_CLUSTER);
        if (backs_off)
            (void)snprintf(why, sizeof why, "%s", admin->detail);
        refused = refused || backs_off;
        bool nothing = hf_err_is(err, HF_ERR_PASSES);
        bool again = nothing || err == HF_UNSURE;
        /* A queue that backs off is asked a last time, so the reason is told. */
        uint64_t last_ns = until_ns - (backs_off ? RETRY_MS * HF_MS_NS : 0);
        if (!again || hf_boot_ns() >= last_ns) {
            if (unsure && ask->writes && (nothing || err == HF_TIMEOUT))
                return HF_UNSURE;
            /* If that time was too short for an answer, the one before is the reason. */
            backs_off =
                backs_off ||
                (last && (err == HF_TIMEOUT || (err == HF_UNSURE && !ask->writes)));
            return backs_off ? unserved(admin, ask, why) : err;
        }
        int64_t ms = hf_backoff_ms(&pauses, ++tries, &admin->rng);
        uint64_t pause =
            backs_off ? backoff.until_ns : hf_boot_ns() + (uint64_t)ms * HF_MS_NS;
        hf_admin_idle(admin, pause < last_ns ? pause : last_ns);
    }
}

hf_err hf_admin_ask(hf_admin *admin, hf_ask *ask)
{
    hf_err err = ask->err;
    if (err == HF_OK && ask->args.failed)
        err = hf_admin_no_memory(admin);
    if (ask->until_ns == 0)
        ask->until_ns = hf_admin_until(admin);
    if (err == HF_OK)
        err = ask_until(admin, ask, ask->until_ns);
    hf_args_done(&ask->args);
    return err;
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
    return hf_plain_time_read(answer, &m->ms);
}

hf_err hf_admin_clock(hf_admin *admin, const hf_queue *queue, uint64_t until_ns,
                      hf_admin_time *out)
{
    moment m = {0, 0};
    hf_ask ask = {.queue = queue, .until_ns = until_ns, .read = read_time, .out = &m};
    hf_args_text(&ask.args, "TIME");
    hf_err err = hf_admin_ask(admin, &ask);
    int64_t left =
        until_ns > m.read_ns ? (int64_t)((until_ns - m.read_ns) / HF_MS_NS) : 0;
    if (err == HF_OK)
        *out = (hf_admin_time){.now_ms = m.ms, .not_after = m.ms + left};
    return err;
}

void hf_ask_order(hf_ask *ask, hf_admin *admin)
{
    ask->writes = true;
    ask->until_ns = hf_admin_until(admin);
    ask->err = hf_admin_clock(admin, ask->queue, ask->until_ns, &ask->time);
}

void hf_ask_word(hf_ask *ask, hf_admin *admin)
{
    char word[HF_NEW_ID_SIZE] = "";
    if (ask->writes)
        hf_id_next(&admin->words, word);
    (void)snprintf(ask->word, sizeof ask->word, "%" PRId64 "%s%s", ask->time.not_after,
                   word[0] != '\0' ? " " : "", word);
    hf_args_text(&ask->args, ask->word);
}

/* ---- life ---- */

void hf_admin_close(hf_admin *admin)
{
    if (admin == NULL)
        return;
    hf_nodes_close(&admin->nodes, NULL, NULL);
    hf_run_loop_close(&admin->run);
    hf_nodes_free(&admin->nodes);
    free(admin);
}

static void flush(void *arg)
{
    const hf_admin *admin = arg;
    for (const hf_node *node = admin->nodes.first; node != NULL; node = node->next)
        hf_client_flush(node->client);
}

static void submit(void *arg)
{
    (void)arg; /* a call sends its request itself, before it waits */
}

static const hf_run_hooks hooks = {submit, flush, NULL};

/* Of a cluster it is enough to know the table: a node that is away stops only what is
 * asked of it. */
static hf_err wait_table(hf_admin *admin, uint64_t until_ns)
{
    while (hf_cluster_changes(admin->nodes.cluster) == 0) {
        if (left_ms(until_ns) == 0 || is_refused(admin->nodes.away))
            return why_not(admin, admin->nodes.away);
        wait_for_news(admin, until_ns);
    }
    return HF_OK;
}

static hf_err start(hf_admin *admin, const hf_server_opts *server)
{
    const hf_nodes_opts opts = {.node_size = sizeof(hf_admin_node),
                                .replica_ok = true,
                                .hooks = &nodes_hooks,
                                .owner = admin};
    hf_node *node;
    hf_err err = hf_nodes_open(&admin->nodes, server, &opts, admin->detail);
    if (err != HF_OK)
        return err;
    uint64_t until_ns = hf_boot_ns() + server->connect_timeout_ms * HF_MS_NS;
    err = hf_nodes_start(&admin->nodes, admin->run.uv, admin->detail);
    if (err != HF_OK)
        return err;
    return hf_cluster_is_plain(admin->nodes.cluster)
               ? wait_ready(admin, 0, until_ns, &node)
               : wait_table(admin, until_ns);
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
    if (hf_id_maker_init(&admin->words) != HF_OK) {
        free(admin);
        return hf_say(detail, HF_SYSTEM, "no random bytes could be read");
    }
    if (hf_run_loop_open(&admin->run, NULL, &hooks, admin) != HF_OK) {
        free(admin);
        return hf_say(detail, HF_SYSTEM, "no event loop could be made");
    }
    hf_admin_begin(admin, detail);
    admin->rng.state = hf_boot_ns();
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

/* ---- the servers ---- */

/* That of hf_admin_servers() as long as the connection leads to the same server. */
static const hf_server_info *info_of(hf_node *base)
{
    const hf_server_info *asked = &node_of(base)->info;
    const hf_server_info *greeted = hf_client_server(base->client);
    return asked->size != 0 && strcmp(asked->run_id, greeted->run_id) == 0 ? asked
                                                                           : greeted;
}

const hf_server_info *hf_admin_server(const hf_admin *admin)
{
    static const hf_server_info unknown = {.size = sizeof unknown};
    if (admin->here != NULL)
        return info_of(admin->here);
    return admin->nodes.first == NULL ? &unknown : info_of(admin->nodes.first);
}

typedef struct visit {
    hf_server_cb cb;
    void *arg;
} visit;

static hf_err read_info(const hf_answer *answer, void *out)
{
    hf_info_parse(hf_reply_text(answer->reply), out);
    return HF_OK;
}

/* A user that may not ask is told what the greeting told. */
static hf_err ask_info(hf_admin *admin, hf_node *node)
{
    hf_server_info info = {.client_id = hf_client_server(node->client)->client_id};
    hf_ask ask = {.read = read_info, .out = &info};
    hf_args_text(&ask.args, "INFO");
    hf_err err = hf_admin_ask(admin, &ask);
    if (err == HF_OK)
        node_of(node)->info = info;
    return err == HF_AUTH || err == HF_REDIS ? HF_OK : err;
}

static hf_err visit_one(hf_admin *admin, void *arg)
{
    const visit *v = arg;
    hf_node *node = NULL;
    char why[HF_DETAIL_SIZE] = "";
    hf_err err = wait_ready(admin, 0, hf_admin_until(admin), &node);
    if (err == HF_OK && node != NULL)
        err = ask_info(admin, node);
    if (err != HF_OK)
        (void)snprintf(why, sizeof why, "%s", admin->detail);
    bool plain = hf_cluster_is_plain(admin->nodes.cluster);
    v->cb(plain ? NULL : admin->here->redis->place, err, why, v->arg);
    return HF_OK;
}

hf_err hf_admin_servers(hf_admin *admin, hf_server_cb cb, void *arg,
                        char detail[HF_DETAIL_SIZE])
{
    visit v = {cb, arg};
    hf_admin_begin(admin, detail);
    return hf_admin_each_node(admin, visit_one, &v);
}
