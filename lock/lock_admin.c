/* lock_admin.c - the calls of operators: show the holders of a lock, list locks, take one
 * away; and fence_check, for stores that guard a resource. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/detail.h"
#include "base/id.h"
#include "base/mask.h"
#include "base/structs.h"
#include "lock/ask.h"
#include "lock/callback.h"
#include "lock/client.h"
#include "lock/lock.h"
#include "lock/names.h"
#include "lock/nodes.h"
#include "lock/ops.h"
#include "redis/plain.h"
#include "redis/send.h"

enum { LOOK_MAX = 1000, LOOK_EACH = 4, SCAN_COUNT = 1000 };

static hf_err check_name(const char *name, char *detail)
{
    if (hf_lock_name_check(name) == HF_OK)
        return HF_OK;
    return hf_say(detail, HF_INVALID, "expected the name of a lock, found \"%s\"",
                  HF_FOUND(name == NULL ? "" : name));
}

typedef struct place {
    char prefix[HF_TAG_PREFIX_SIZE];
    hf_bytes bytes;
    unsigned slot;
} place;

static void find(place *p, const hf_lock_client *locks, const char *name)
{
    p->bytes = (hf_bytes){p->prefix, hf_names_prefix(p->prefix, locks->ns, name)};
    p->slot = hf_nodes_slot(&locks->nodes, p->prefix, p->bytes.len);
}

/* ---- looking ---- */

typedef struct looking {
    const place *at;
    const char *name;
    size_t limit;
    hf_lock_look *out;
} looking;

static hf_err send_look(hf_lock_ask *ask, hf_client *client, hf_answer_cb cb, void *arg)
{
    const looking *l = ask->arg;
    return hf_op_lock_look(client, l->at->bytes, l->name, l->limit, cb, arg);
}

static hf_lock_mode mode_of(char letter)
{
    return letter == 's'   ? HF_LOCK_SHARED
           : letter == 'p' ? HF_LOCK_PERMITS
                           : HF_LOCK_EXCLUSIVE;
}

static size_t count_holds(const char *text)
{
    size_t n = 0;
    for (; *text != '\0'; text++)
        n += *text == '=';
    return n;
}

/* "mode state permits fence client names holds lease"; a state of 2: asked back. */
static bool read_entry(hf_lock_entry *e, const hf_reply *list, size_t i)
{
    char mode;
    int state;
    unsigned permits;
    unsigned long long fence;
    const char *text = hf_reply_text(hf_reply_at(list, i + 2));
    const char *lease = strrchr(text, ' ');
    (void)snprintf(e->owner, sizeof e->owner, "%s", hf_reply_text(hf_reply_at(list, i)));
    e->ends_ms = hf_reply_int(hf_reply_at(list, i + 1));
    e->since_ms = hf_reply_int(hf_reply_at(list, i + 3));
    e->lease_ms = lease == NULL ? 0 : strtoll(lease, NULL, 10);
    if (sscanf(text, "%c %d %u %llu %95s", &mode, &state, &permits, &fence, e->client) !=
        5)
        return false;
    e->mode = mode_of(mode);
    e->granted = state != 0;
    e->revoked = state == 2;
    e->permits = permits;
    e->fence = fence;
    e->holds = count_holds(text);
    return true;
}

/* A plain string, ours (`owner:fence`) or of another program. */
static void read_cell(hf_lock_entry *e, const char *value, int64_t ends_ms)
{
    const char *colon = strrchr(value, ':');
    size_t len = colon == NULL ? strlen(value) : (size_t)(colon - value);
    *e = (hf_lock_entry){.granted = true, .permits = 1, .holds = 1, .ends_ms = ends_ms};
    (void)snprintf(e->owner, sizeof e->owner, "%.*s", (int)len, value);
    e->fence = colon == NULL ? 0 : strtoull(colon + 1, NULL, 10);
}

static hf_err read_look(hf_lock_ask *ask, const hf_answer *answer)
{
    const looking *l = ask->arg;
    hf_lock_look *out = l->out;
    hf_err err = hf_send_script_status(answer, 9, &out->now_ms);
    if (err != HF_OK)
        return err;
    const char *cell = hf_reply_text(hf_reply_at(answer->reply, 2));
    const hf_reply *list = hf_reply_at(answer->reply, 5);
    size_t n = hf_reply_len(list) / LOOK_EACH, has_cell = cell[0] != '\0';
    out->all = (size_t)hf_reply_int(hf_reply_at(answer->reply, 4)) + has_cell;
    out->holders = (size_t)hf_reply_int(hf_reply_at(answer->reply, 6)) + has_cell;
    out->entries = calloc(n + has_cell + 1, sizeof *out->entries);
    if (out->entries == NULL)
        return HF_NOMEM;
    if (has_cell)
        read_cell(&out->entries[out->n++], cell,
                  hf_reply_int(hf_reply_at(answer->reply, 3)));
    for (size_t i = 0; i < n; i++)
        if (read_entry(&out->entries[out->n], list, LOOK_EACH * i))
            out->n++;
    for (size_t i = 0; i < out->n; i++)
        out->entries[i].size = sizeof out->entries[i];
    if (out->n > 0 && out->entries[0].mode == HF_LOCK_PERMITS) {
        out->taken = (uint32_t)hf_reply_int(hf_reply_at(answer->reply, 7));
        out->limit = (uint32_t)hf_reply_int(hf_reply_at(answer->reply, 8));
    }
    return HF_OK;
}

hf_err hf_lock_look_at(hf_lock_client *locks, const char *name, size_t limit,
                       hf_lock_look *theirs, char detail[HF_DETAIL_SIZE])
{
    place at;
    hf_lock_look out = {HF_LOCK_LOOK_INIT};
    looking l = {.at = &at,
                 .name = name,
                 .limit = limit < 1          ? 1
                          : limit > LOOK_MAX ? LOOK_MAX
                                             : limit,
                 .out = &out};
    hf_lock_ask ask = {.send = send_look, .read = read_look, .arg = &l, .repeats = true};
    hf_err err = hf_struct_can_fill(theirs, "hf_lock_look", detail);
    if (err != HF_OK)
        return err;
    hf_struct_fill(theirs, &out, sizeof out);
    err = check_name(name, detail);
    if (err != HF_OK)
        return err;
    find(&at, locks, name);
    ask.slot = at.slot;
    err = hf_ask_wait(&ask, locks, detail);
    hf_struct_fill(theirs, &out, sizeof out);
    return err;
}

const hf_lock_entry *hf_lock_look_entry(const hf_lock_look *look, size_t i)
{
    return i < look->n ? &look->entries[i] : NULL;
}

void hf_lock_look_done(hf_lock_look *look)
{
    free(look->entries);
    look->entries = NULL;
    look->n = look->all = 0;
}

/* ---- listing ---- */

typedef struct listing {
    const char *pattern;
    size_t skip;     /* bytes of a key before the tag */
    unsigned node;   /* the one at hand, */
    char cursor[24]; /* and how far its keys were looked at; "": not at all */
    bool (*each)(const char *name, void *arg);
    void *arg;
    uint64_t until_ns; /* boot time */
    bool stopped;
} listing;

static hf_err send_scan(hf_lock_ask *ask, hf_client *client, hf_answer_cb cb, void *arg)
{
    const listing *l = ask->arg;
    hf_args a;
    hf_args_init(&a, 6, 1);
    hf_args_text(&a, "SCAN");
    hf_args_text(&a, l->cursor);
    hf_args_text(&a, "MATCH");
    hf_args_text(&a, l->pattern);
    hf_args_text(&a, "COUNT");
    hf_args_int(&a, SCAN_COUNT);
    return hf_send_command(client, &a, 0, cb, arg);
}

/* "...{tag}:e:NAME" and "...{tag}:cell:NAME" are locks; each line has one `e`. */
static const char *name_in(const char *key)
{
    const char *at = strstr(key, "}:");
    if (at == NULL)
        return NULL;
    if (strncmp(at, "}:e:", 4) == 0)
        return at + 4;
    return strncmp(at, "}:cell:", 7) == 0 ? at + 7 : NULL;
}

static hf_err read_scan(hf_lock_ask *ask, const hf_answer *answer)
{
    listing *l = ask->arg;
    if (answer->err != HF_OK)
        return answer->err;
    if (hf_reply_len(answer->reply) != 2)
        return HF_PROTO;
    const hf_reply *keys = hf_reply_at(answer->reply, 1);
    (void)snprintf(l->cursor, sizeof l->cursor, "%s",
                   hf_reply_text(hf_reply_at(answer->reply, 0)));
    hf_callback callback;
    hf_callback_begin(&callback, ask->locks);
    for (size_t i = 0; i < hf_reply_len(keys) && !l->stopped; i++) {
        const char *name = name_in(hf_reply_text(hf_reply_at(keys, i)) + l->skip);
        if (name != NULL && hf_lock_name_check(name) == HF_OK)
            l->stopped = !l->each(name, l->arg);
    }
    hf_callback_end(&callback);
    return HF_OK;
}

static hf_err list_at(hf_lock_client *locks, hf_server *redis, listing *l, char *detail)
{
    hf_err err;
    if (l->cursor[0] == '\0')
        (void)snprintf(l->cursor, sizeof l->cursor, "0");
    do {
        if (hf_boot_ns() >= l->until_ns)
            return hf_say(detail, HF_TIMEOUT, "not all keys were looked at in this time");
        hf_lock_ask ask = {.redis = redis,
                           .send = send_scan,
                           .read = read_scan,
                           .arg = l,
                           .repeats = true,
                           .calls_back = true};
        err = hf_ask_wait(&ask, locks, detail);
    } while (err == HF_OK && !l->stopped && strcmp(l->cursor, "0") != 0);
    if (strcmp(l->cursor, "0") == 0)
        l->cursor[0] = '\0';
    return err;
}

/* ---- listing: the nodes ---- */

static hf_err send_time(hf_lock_ask *ask, hf_client *client, hf_answer_cb cb, void *arg)
{
    (void)ask;
    return hf_plain_time(client, cb, arg);
}

static hf_err read_time(hf_lock_ask *ask, const hf_answer *answer)
{
    int64_t unread_ms;
    (void)ask;
    return hf_plain_time_read(answer, &unread_ms);
}

/* Owned by the caller, as each of them. The nodes of a cluster are known when one of them
 * has answered. */
static hf_err find_servers(hf_lock_client *locks, hf_server ***out, size_t *n,
                           char *detail)
{
    hf_cluster *cluster = locks->nodes.cluster;
    hf_lock_ask ask = {.send = send_time, .read = read_time, .repeats = true};
    hf_err err = HF_OK;
    hf_server **servers = calloc(HF_NODES_MAX, sizeof *servers);
    if (servers == NULL)
        return hf_say_err(detail, HF_NOMEM);
    *n = hf_cluster_servers(cluster, servers, HF_NODES_MAX);
    if (*n == 0) {
        err = hf_ask_wait(&ask, locks, detail);
        *n = hf_cluster_servers(cluster, servers, HF_NODES_MAX);
    }
    *n = *n < HF_NODES_MAX ? *n : HF_NODES_MAX;
    *out = servers;
    return err;
}

/* "NODE/CURSOR" */
static void read_place(listing *l, const char *where)
{
    char *cursor;
    const unsigned long node = strtoul(where, &cursor, 10);
    if (node >= HF_NODES_MAX || *cursor != '/')
        return;
    l->node = (unsigned)node;
    (void)snprintf(l->cursor, sizeof l->cursor, "%s", cursor + 1);
}

static void put_place(const listing *l, hf_err err, char where[HF_LOCK_PLACE_SIZE])
{
    where[0] = '\0';
    if (err == HF_TIMEOUT)
        (void)snprintf(where, HF_LOCK_PLACE_SIZE, "%u/%s", l->node, l->cursor);
}

static hf_err list_until(hf_lock_client *locks, char *where, uint64_t until_ns,
                         bool (*each)(const char *name, void *arg), void *arg,
                         char *detail)
{
    char pattern[HF_TAG_PREFIX_SIZE];
    listing l = {.pattern = pattern, .each = each, .arg = arg, .until_ns = until_ns};
    int len = snprintf(pattern, sizeof pattern, "%s:lock:{*}:*", locks->ns);
    l.skip = (size_t)len - strlen("{*}:*");
    hf_server **servers = NULL;
    size_t n = 0;
    if (where != NULL)
        read_place(&l, where);
    hf_err err = find_servers(locks, &servers, &n, detail);
    for (; l.node < n && err == HF_OK && !l.stopped; l.node += err == HF_OK)
        err = list_at(locks, servers[l.node], &l, detail);
    for (size_t i = 0; i < n; i++)
        hf_server_close(servers[i]);
    free(servers);
    if (where != NULL)
        put_place(&l, err, where);
    return err;
}

hf_err hf_lock_list(hf_lock_client *locks, bool (*each)(const char *name, void *arg),
                    void *arg, char detail[HF_DETAIL_SIZE])
{
    return list_until(locks, NULL, UINT64_MAX, each, arg, detail);
}

hf_err hf_lock_list_for(hf_lock_client *locks, char where[HF_LOCK_PLACE_SIZE],
                        uint32_t within_ms, bool (*each)(const char *name, void *arg),
                        void *arg, char detail[HF_DETAIL_SIZE])
{
    return list_until(locks, where, hf_boot_ns() + within_ms * HF_MS_NS, each, arg,
                      detail);
}

/* ---- taking away, asking back ---- */

typedef struct forcing {
    const place *at;
    const char *name, *owner;
    uint64_t fence; /* 0: any */
    bool revoke;
    size_t n;
    char word[HF_NEW_ID_SIZE]; /* of the request (redis/lua/lib/requests.lua) */
} forcing;

static hf_err send_force(hf_lock_ask *ask, hf_client *client, hf_answer_cb cb, void *arg)
{
    const forcing *f = ask->arg;
    return hf_op_lock_force(client, f->at->bytes, f->name, f->owner, f->fence, f->revoke,
                            hf_lock_node_not_after(ask->node), f->word, cb, arg);
}

static hf_err read_force(hf_lock_ask *ask, const hf_answer *answer)
{
    forcing *f = ask->arg;
    int64_t now_ms;
    hf_err err = hf_send_script_status(answer, 3, &now_ms);
    if (err == HF_OK)
        f->n = (size_t)hf_reply_int(hf_reply_at(answer->reply, 2));
    return err;
}

static hf_err force(hf_lock_client *locks, forcing f, size_t *n, char *detail)
{
    place at;
    hf_lock_ask ask = {
        .send = send_force, .read = read_force, .arg = &f, .repeats = true};
    hf_id_maker words;
    hf_err err = check_name(f.name, detail);
    if (err == HF_OK && hf_id_maker_init(&words) != HF_OK)
        err = hf_say(detail, HF_SYSTEM, "no random bytes could be read");
    if (err != HF_OK)
        return err;
    hf_id_next(&words, f.word);
    f.at = &at;
    find(&at, locks, f.name);
    ask.slot = at.slot;
    err = hf_ask_wait(&ask, locks, detail);
    if (n != NULL)
        *n = f.n;
    return err;
}

hf_err hf_lock_force(hf_lock_client *locks, const char *name, const char *owner,
                     size_t *n, char detail[HF_DETAIL_SIZE])
{
    return force(locks, (forcing){.name = name, .owner = owner == NULL ? "" : owner}, n,
                 detail);
}

hf_err hf_lock_force_fence(hf_lock_client *locks, const char *name, uint64_t fence,
                           size_t *n, char detail[HF_DETAIL_SIZE])
{
    if (fence == 0 || fence > INT64_MAX)
        return hf_say(detail, HF_INVALID, "expected the fence of a holder");
    return force(locks, (forcing){.name = name, .owner = "", .fence = fence}, n, detail);
}

hf_err hf_lock_revoke(hf_lock_client *locks, const char *name, const char *owner,
                      size_t *n, char detail[HF_DETAIL_SIZE])
{
    return force(
        locks,
        (forcing){.name = name, .owner = owner == NULL ? "" : owner, .revoke = true}, n,
        detail);
}

/* ---- fence_check ---- */

typedef struct checking {
    const place *at;
    const char *resource, *owner;
    uint64_t fence, highest;
    int64_t remember_ms;
} checking;

static hf_err send_check(hf_lock_ask *ask, hf_client *client, hf_answer_cb cb, void *arg)
{
    const checking *c = ask->arg;
    return hf_op_fence_check(client, c->at->bytes, c->resource, c->fence, c->owner,
                             c->remember_ms, cb, arg);
}

static hf_err read_check(hf_lock_ask *ask, const hf_answer *answer)
{
    checking *c = ask->arg;
    int64_t now_ms;
    hf_err err = hf_send_script_status(answer, 3, &now_ms);
    if (err == HF_OK || err == HF_LOST)
        c->highest = (uint64_t)hf_reply_int(hf_reply_at(answer->reply, 2));
    return err;
}

hf_err hf_fence_check(hf_lock_client *locks, const char *resource, uint64_t fence,
                      const char *owner, int64_t remember_ms, uint64_t *highest,
                      char detail[HF_DETAIL_SIZE])
{
    place at;
    checking c = {.at = &at,
                  .resource = resource,
                  .owner = owner,
                  .fence = fence,
                  .remember_ms = remember_ms};
    hf_lock_ask ask = {.send = send_check,
                       .read = read_check,
                       .arg = &c,
                       .repeats = true,
                       .writes_what_must_stay = true};
    hf_err err = check_name(resource, detail);
    if (err == HF_OK &&
        (!hf_name_ok(owner) || fence == 0 || fence > INT64_MAX || remember_ms < 0))
        err = hf_say(detail, HF_INVALID,
                     "expected an owner's name, a fence above 0 and a time of 0 or "
                     "more");
    if (err != HF_OK)
        return err;
    find(&at, locks, resource);
    ask.slot = at.slot;
    err = hf_ask_wait(&ask, locks, detail);
    if (highest != NULL)
        *highest = c.highest;
    return err;
}
