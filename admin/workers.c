/* workers.c - the workers of a namespace, from the registry and their heartbeats.
 *
 * The registry (`hf:{/}:workers`) lists the workers of the last day, each with the time
 * at which its last heartbeat expires; the heartbeat itself is a key that expires then. A
 * worker that stops cleanly removes both. So a worker that is registered and has no
 * heartbeat went silent. A heartbeat may come from another build of version 1, or from
 * another language: fields that are missing or have another type stay empty. */
#include "holdfast/admin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "admin/ask.h"
#include "base/base.h"
#include "base/id.h"
#include "queue/keys.h"

enum {
    PAGE = 1000,
    CURSOR_SIZE = 24,
    WORKERS_MAX = 100000,
    NAMES_MAX = 1000, /* of queues or types that one tells */
    POOLS_MAX = 64,
    BEAT_HOLDS_MS = 30000, /* docs/keys.md */
};

typedef struct entry {
    char id[HF_HOLDER_SIZE];
    int64_t until_ms; /* its heartbeat holds */
    bool silent;
} entry;

typedef struct roster {
    hf_admin *admin;
    entry *at; /* owned */
    size_t n, cap;
    char cursor[CURSOR_SIZE];
    int64_t now_ms;
    size_t from, to; /* the page whose heartbeats are asked for */
    hf_worker_cb cb;
    void *arg;
} roster;

/* ---- the registry ---- */

static bool keep(roster *r, hf_bytes id, int64_t until_ms)
{
    if (!hf_name_ok_n(id.ptr, id.len) || id.len >= HF_HOLDER_SIZE)
        return true; /* not written by us */
    if (r->n == r->cap) {
        size_t cap = r->cap == 0 ? 64 : 2 * r->cap;
        entry *at = realloc(r->at, cap * sizeof *at);
        if (at == NULL)
            return false;
        r->at = at;
        r->cap = cap;
    }
    entry *e = &r->at[r->n++];
    *e = (entry){.until_ms = until_ms};
    memcpy(e->id, id.ptr, id.len);
    return true;
}

static hf_err read_registry(const hf_answer *answer, void *out)
{
    roster *r = out;
    const hf_reply *pairs = hf_reply_at(answer->reply, 1);
    if (hf_reply_len(answer->reply) != 2)
        return HF_PROTO;
    (void)snprintf(r->cursor, sizeof r->cursor, "%s",
                   hf_reply_text(hf_reply_at(answer->reply, 0)));
    for (size_t i = 0; i + 1 < hf_reply_len(pairs); i += 2) {
        double until = strtod(hf_reply_text(hf_reply_at(pairs, i + 1)), NULL);
        if (!keep(r, hf_reply_bytes(hf_reply_at(pairs, i)), (int64_t)until))
            return HF_NOMEM;
    }
    return HF_OK;
}

static int by_id(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    int order = strcmp(x->id, y->id);
    return order != 0 ? order : (x->until_ms < y->until_ms) - (x->until_ms > y->until_ms);
}

/* A scan may tell one twice: of these the later stays. */
static void sort(roster *r)
{
    size_t n = 0;
    if (r->n > 0)
        qsort(r->at, r->n, sizeof *r->at, by_id);
    for (size_t i = 0; i < r->n; i++)
        if (n == 0 || strcmp(r->at[n - 1].id, r->at[i].id) != 0)
            r->at[n++] = r->at[i];
    r->n = n;
}

static hf_err gather(roster *r)
{
    char key[HF_KEY_SIZE];
    hf_err err = HF_OK;
    hf_key_workers(key, r->admin->ns);
    (void)snprintf(r->cursor, sizeof r->cursor, "0");
    do {
        hf_ask ask = {.read = read_registry, .out = r};
        char cursor[CURSOR_SIZE];
        memcpy(cursor, r->cursor, sizeof cursor);
        hf_args_text(&ask.args, "ZSCAN");
        hf_args_text(&ask.args, key);
        hf_args_text(&ask.args, cursor);
        hf_args_text(&ask.args, "COUNT");
        hf_args_int(&ask.args, PAGE);
        err = hf_admin_ask(r->admin, &ask);
        if (err == HF_OK && r->n > WORKERS_MAX)
            err = hf_admin_fail(r->admin, HF_TOOBIG, "there are more than %d workers",
                                WORKERS_MAX);
    } while (err == HF_OK && strcmp(r->cursor, "0") != 0);
    sort(r);
    return err;
}

/* ---- one of them ---- */

static void take_text(char *out, size_t size, json_t *value)
{
    if (json_is_string(value))
        (void)snprintf(out, size, "%s", json_string_value(value));
}

static int64_t take_int(json_t *root, const char *key)
{
    json_t *value = json_object_get(root, key);
    return json_is_integer(value) && json_integer_value(value) > 0
               ? json_integer_value(value)
               : 0;
}

static uint32_t take_count(json_t *root, const char *key)
{
    int64_t value = take_int(root, key);
    return value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
}

/* Answers how many of the list are names; they are borrowed from it. */
static size_t take_names(const char *names[NAMES_MAX], json_t *list)
{
    size_t n = 0;
    for (size_t i = 0; i < json_array_size(list) && n < NAMES_MAX; i++) {
        const char *name = json_string_value(json_array_get(list, i));
        if (name != NULL)
            names[n++] = name;
    }
    return n;
}

/* An id is host-pid-random, and a host's name may have dashes of its own. */
static void split_id(hf_worker_info *info)
{
    const char *random = strrchr(info->id, '-');
    const char *pid = random;
    while (pid != NULL && pid > info->id && pid[-1] >= '0' && pid[-1] <= '9')
        pid--;
    if (pid == NULL || pid == random || pid == info->id || pid[-1] != '-')
        return;
    (void)snprintf(info->host, sizeof info->host, "%.*s", (int)(pid - 1 - info->id),
                   info->id);
    info->pid = strtoll(pid, NULL, 10);
}

static size_t take_pools(hf_worker_pool_info pools[POOLS_MAX], json_t *list)
{
    size_t n = 0;
    for (; n < json_array_size(list) && n < POOLS_MAX; n++) {
        json_t *one = json_array_get(list, n);
        hf_worker_pool_info *pool = &pools[n];
        *pool = (hf_worker_pool_info){.size = sizeof *pool};
        take_text(pool->name, sizeof pool->name, json_object_get(one, "name"));
        take_text(pool->state, sizeof pool->state, json_object_get(one, "state"));
        pool->processes = take_count(one, "processes");
        pool->slots = take_count(one, "slots");
        pool->running = take_count(one, "running");
        pool->memory = take_int(one, "memory");
    }
    return n;
}

static void begin(hf_worker_info *info, const roster *r, const entry *e)
{
    *info = (hf_worker_info){.size = sizeof *info,
                             .silent = e->silent,
                             .heard_ms = e->until_ms - BEAT_HOLDS_MS,
                             .now_ms = r->now_ms};
    memcpy(info->id, e->id, sizeof info->id);
    split_id(info);
}

static void tell_heard(roster *r, const entry *e, hf_bytes heartbeat)
{
    hf_worker_info info;
    const char *queues[NAMES_MAX], *types[NAMES_MAX];
    hf_worker_pool_info pools[POOLS_MAX];
    json_t *root = json_loadb(heartbeat.ptr, heartbeat.len, 0, NULL);
    json_t *listed = json_object_get(root, "types");
    begin(&info, r, e);
    take_text(info.host, sizeof info.host, json_object_get(root, "host"));
    take_text(info.state, sizeof info.state, json_object_get(root, "state"));
    take_text(info.version, sizeof info.version, json_object_get(root, "version"));
    if (take_int(root, "pid") != 0)
        info.pid = take_int(root, "pid");
    if (take_int(root, "now_ms") != 0)
        info.heard_ms = take_int(root, "now_ms");
    info.started_ms = take_int(root, "started_ms");
    info.concurrency = take_count(root, "concurrency");
    info.running = take_count(root, "running");
    info.n_queues = take_names(queues, json_object_get(root, "queues"));
    info.n_types = take_names(types, listed);
    info.all_types =
        json_is_array(listed) && !json_is_true(json_object_get(root, "types_cut"));
    info.queues = queues;
    info.types = types;
    info.n_pools = take_pools(pools, json_object_get(root, "pools"));
    info.pools = pools;
    r->cb(&info, r->arg);
    json_decref(root);
}

static hf_err read_heartbeats(const hf_answer *answer, void *out)
{
    roster *r = out;
    if (hf_reply_len(answer->reply) != r->to - r->from)
        return HF_PROTO;
    for (size_t i = r->from; i < r->to; i++) {
        const hf_reply *heartbeat = hf_reply_at(answer->reply, i - r->from);
        r->at[i].silent = hf_reply_is_nil(heartbeat);
        if (!r->at[i].silent)
            tell_heard(r, &r->at[i], hf_reply_bytes(heartbeat));
    }
    return HF_OK;
}

static hf_err ask_page(roster *r)
{
    hf_ask ask = {.read = read_heartbeats, .out = r};
    size_t n = r->to - r->from;
    char(*keys)[HF_KEY_SIZE] = malloc(n * sizeof *keys);
    if (keys == NULL)
        return hf_admin_no_memory(r->admin);
    hf_args_init(&ask.args, n + 1, 0);
    hf_args_text(&ask.args, "MGET");
    for (size_t i = 0; i < n; i++) {
        hf_key_worker(keys[i], r->admin->ns, r->at[r->from + i].id);
        hf_args_text(&ask.args, keys[i]);
    }
    hf_err err = hf_admin_ask(r->admin, &ask);
    free(keys);
    return err;
}

hf_err hf_admin_workers(hf_admin *admin, hf_worker_cb cb, void *arg,
                        char detail[HF_DETAIL_SIZE])
{
    hf_admin_time time;
    hf_admin_begin(admin, detail);
    hf_err err = hf_admin_clock(admin, NULL, hf_admin_until(admin), &time);
    if (err != HF_OK)
        return err;
    roster r = {.admin = admin, .cb = cb, .arg = arg, .now_ms = time.now_ms};
    err = gather(&r);
    for (; err == HF_OK && r.from < r.n; r.from = r.to) {
        r.to = r.n - r.from < PAGE ? r.n : r.from + PAGE;
        err = ask_page(&r);
    }
    for (size_t i = 0; err == HF_OK && i < r.n; i++) {
        hf_worker_info info;
        if (!r.at[i].silent)
            continue;
        begin(&info, &r, &r.at[i]);
        cb(&info, arg);
    }
    free(r.at);
    return err;
}
