/* cluster.c - see cluster.h. */
#include "redis/cluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <uv.h>

#include "base/base.h"
#include "redis/err.h"
#include "redis/slot_watch.h"

enum { TAGS = 16 * HF_SLOTS /* that are tried: a node with one slot finds some */ };

/* One that has slots, or whose server has users. Port 0: free. */
typedef struct node {
    hf_place place;
    hf_server *server; /* shared; NULL: no user has needed it yet */
    size_t n_slots;
} node;

struct hf_cluster {
    hf_server *given; /* owned; of a cluster's URL: how to reach the nodes, no server */
    bool plain;
    _Atomic uint64_t changes;
    atomic_uint users;

    hf_slot_watch *watch; /* these belong to the loop; NULL: none */
    uv_async_t news;
    unsigned handles; /* the watch and the news, not closed yet */
    uint64_t told;    /* changes of the table that the user knows of */
    void (*on_change)(void *arg);
    void *arg;
    void (*on_closed)(void *arg);
    void *closed_arg;

    pthread_mutex_t lock; /* for all below */
    bool watched;         /* the news may be sent */
    node *nodes;          /* owned */
    size_t n_nodes;
    uint16_t at[HF_SLOTS]; /* 0: not known; else 1 + the node's number */
    bool doubted;          /* since the nodes were asked last */
    bool missed;           /* a slot's server was asked for in vain since the change */
    hf_place informed;     /* it has answered MOVED; port 0: none has */
    size_t turn;           /* the node that is asked first the next time */
    hf_err err;
    char why[HF_DETAIL_SIZE];
};

/* ---- the table; the lock is held ---- */

static void tell(hf_cluster *c)
{
    if (c->watched)
        uv_async_send(&c->news);
}

static void count_change(hf_cluster *c)
{
    atomic_fetch_add(&c->changes, 1);
    c->missed = false;
}

static hf_server *make_server(hf_cluster *c, const hf_place *place)
{
    const hf_server *given = c->given;
    hf_server *server = NULL;
    char why[HF_DETAIL_SIZE];
    hf_err err = hf_server_open_node(&server, given, place, given->connect_timeout_ms,
                                     given->request_timeout_ms, why);
    if (err == HF_OK)
        return server;
    c->err = err;
    (void)snprintf(c->why, sizeof c->why, "%s", why);
    return NULL;
}

static hf_server *share_node(hf_cluster *c, node *of)
{
    if (of->server == NULL)
        of->server = make_server(c, &of->place);
    return of->server == NULL ? NULL : hf_server_share(of->server);
}

/* The node of that place, from 1 on; it is made if there is none. 0: no memory. */
static uint16_t number_of(hf_cluster *c, const hf_place *place)
{
    size_t unused = c->n_nodes;
    for (size_t i = 0; i < c->n_nodes; i++) {
        if (hf_url_place_is(&c->nodes[i].place, place))
            return (uint16_t)(i + 1);
        if (c->nodes[i].place.port == 0)
            unused = i;
    }
    if (unused == UINT16_MAX)
        return 0;
    if (unused == c->n_nodes) {
        node *nodes = realloc(c->nodes, (c->n_nodes + 1) * sizeof *nodes);
        if (nodes == NULL)
            return 0;
        c->nodes = nodes;
        c->n_nodes++;
    }
    c->nodes[unused] = (node){.place = *place};
    return (uint16_t)(unused + 1);
}

static void give_slot(hf_cluster *c, unsigned slot, uint16_t number)
{
    if (c->at[slot] != 0)
        c->nodes[c->at[slot] - 1].n_slots--;
    c->at[slot] = number;
    if (number != 0)
        c->nodes[number - 1].n_slots++;
}

/* Nodes without a slot and without a user. */
static void drop_nodes(hf_cluster *c)
{
    for (size_t i = 0; i < c->n_nodes; i++) {
        node *at = &c->nodes[i];
        if (at->n_slots > 0 || (at->server != NULL && hf_server_is_shared(at->server)))
            continue;
        hf_server_close(at->server);
        *at = (node){.n_slots = 0};
    }
}

static bool take_map(hf_cluster *c, const hf_slot_map *map)
{
    uint16_t numbers[HF_NODES_MAX + 1] = {0};
    bool changed = false;
    for (size_t i = 0; i < map->n_nodes; i++)
        numbers[i + 1] = number_of(c, &map->nodes[i]);
    for (unsigned slot = 0; slot < HF_SLOTS; slot++) {
        if (numbers[map->at[slot]] == c->at[slot])
            continue;
        give_slot(c, slot, numbers[map->at[slot]]);
        changed = true;
    }
    drop_nodes(c);
    return changed;
}

/* ---- for users ---- */

bool hf_cluster_is_plain(const hf_cluster *c)
{
    return c->plain;
}

uint64_t hf_cluster_changes(const hf_cluster *c)
{
    return atomic_load(&c->changes);
}

hf_server *hf_cluster_server(hf_cluster *c, unsigned slot)
{
    HF_ASSERT(slot < HF_SLOTS);
    if (c->plain)
        return hf_server_share(c->given);
    pthread_mutex_lock(&c->lock);
    hf_server *server =
        c->at[slot] == 0 ? NULL : share_node(c, &c->nodes[c->at[slot] - 1]);
    if (server == NULL && !c->missed) {
        c->missed = c->doubted = true;
        tell(c);
    }
    pthread_mutex_unlock(&c->lock);
    return server;
}

size_t hf_cluster_servers(hf_cluster *c, hf_server **out, size_t max)
{
    size_t n = 0;
    if (c->plain) {
        if (max > 0)
            out[0] = hf_server_share(c->given);
        return 1;
    }
    pthread_mutex_lock(&c->lock);
    for (size_t i = 0; i < c->n_nodes; i++) {
        hf_server *server = NULL;
        if (c->nodes[i].n_slots == 0)
            continue;
        if (n < max && (server = share_node(c, &c->nodes[i])) == NULL)
            continue;
        if (n < max)
            out[n] = server;
        n++;
    }
    pthread_mutex_unlock(&c->lock);
    return n;
}

bool hf_cluster_has_slots(hf_cluster *c, const hf_server *server)
{
    bool has = c->plain;
    pthread_mutex_lock(&c->lock);
    for (size_t i = 0; i < c->n_nodes && !has; i++)
        has = c->nodes[i].server == server && c->nodes[i].n_slots > 0;
    pthread_mutex_unlock(&c->lock);
    return has;
}

void hf_cluster_key(hf_cluster *c, const hf_server *server, const char *ns,
                    const char *name, unsigned *tag, char *out, size_t size)
{
    bool found = false;
    HF_ASSERT(!c->plain);
    pthread_mutex_lock(&c->lock);
    for (unsigned i = 0; i < TAGS && !found; i++) {
        unsigned n = (*tag + i) % TAGS;
        int len = snprintf(out, size, "%s:{/%u}:%s", ns, n, name);
        HF_ASSERT(len > 0 && (size_t)len < size);
        unsigned at = c->at[hf_slot(out, (size_t)len)];
        found = at != 0 && c->nodes[at - 1].server == server;
        if (found)
            *tag = n;
    }
    pthread_mutex_unlock(&c->lock);
    if (!found)
        out[0] = '\0';
}

hf_err hf_cluster_status(hf_cluster *c, char why[HF_DETAIL_SIZE])
{
    pthread_mutex_lock(&c->lock);
    hf_err err = c->err;
    (void)snprintf(why, HF_DETAIL_SIZE, "%s", err == HF_OK ? "" : c->why);
    pthread_mutex_unlock(&c->lock);
    return err;
}

void hf_cluster_moved(hf_cluster *c, const hf_server *asked, const char *words)
{
    unsigned slot;
    hf_place from = {.port = asked->url.port}, to;
    if (c->plain)
        return;
    memcpy(from.host, asked->url.host, sizeof from.host);
    bool told = hf_slot_moved_read(words, &from, &slot, &to);
    pthread_mutex_lock(&c->lock);
    uint16_t number = told ? number_of(c, &to) : 0;
    if (number != 0 && number != c->at[slot]) {
        give_slot(c, slot, number);
        count_change(c);
    }
    c->informed = from;
    c->doubted = true;
    tell(c);
    pthread_mutex_unlock(&c->lock);
}

void hf_cluster_doubt(hf_cluster *c)
{
    if (c->plain)
        return;
    pthread_mutex_lock(&c->lock);
    if (!c->doubted) {
        c->doubted = true;
        tell(c);
    }
    pthread_mutex_unlock(&c->lock);
}

bool hf_cluster_refused(hf_cluster *c, const hf_server *asked, hf_err err,
                        const char *words)
{
    if (c->plain || (err != HF_READONLY && !hf_err_is(err, HF_ERR_OF_CLUSTER)))
        return false;
    if (err == HF_MOVED)
        hf_cluster_moved(c, asked, words);
    else
        hf_cluster_doubt(c);
    return true;
}

/* ---- the watch ---- */

/* The table or the status has changed. */
static void tell_user(hf_cluster *c, bool status)
{
    uint64_t changes = atomic_load(&c->changes);
    if (changes == c->told && !status)
        return;
    c->told = changes;
    c->on_change(c->arg);
}

static void on_news(uv_async_t *news)
{
    hf_cluster *c = news->data;
    if (!c->watched)
        return; /* it is being closed */
    pthread_mutex_lock(&c->lock);
    bool doubted = c->doubted;
    pthread_mutex_unlock(&c->lock);
    if (doubted)
        hf_slot_watch_again(c->watch);
    tell_user(c, false);
}

static void add_place(hf_place out[HF_ASKED_MAX], size_t *n, size_t max,
                      const hf_place *place)
{
    bool known = place->port == 0 || *n == max;
    for (size_t i = 0; i < *n && !known; i++)
        known = hf_url_place_is(&out[i], place);
    if (!known)
        out[(*n)++] = *place;
}

/* Each time another one is asked first: one that is away or has an old view costs others
 * little. There is always room for those of the URL. */
static size_t nodes_to_ask(void *owner, hf_place out[HF_ASKED_MAX])
{
    hf_cluster *c = owner;
    const hf_url_cluster *seeds = &c->given->url.cluster;
    size_t n = 0;
    pthread_mutex_lock(&c->lock);
    add_place(out, &n, HF_URL_NODES_MAX, &c->informed);
    c->informed = (hf_place){.port = 0};
    for (size_t i = 0; i < c->n_nodes; i++) {
        const node *at = &c->nodes[(c->turn + i) % c->n_nodes];
        if (at->n_slots > 0)
            add_place(out, &n, HF_URL_NODES_MAX, &at->place);
    }
    c->turn++;
    for (size_t i = 0; i < seeds->n_nodes; i++)
        add_place(out, &n, HF_ASKED_MAX, &seeds->nodes[i]);
    c->doubted = false;
    pthread_mutex_unlock(&c->lock);
    return n;
}

static void on_map(void *owner, const hf_slot_map *map)
{
    hf_cluster *c = owner;
    pthread_mutex_lock(&c->lock);
    bool failed = c->err != HF_OK;
    if (take_map(c, map))
        count_change(c);
    c->doubted = c->doubted || c->missed;
    c->err = HF_OK;
    if (c->doubted)
        tell(c);
    pthread_mutex_unlock(&c->lock);
    tell_user(c, failed);
}

static void on_vain(void *owner, hf_err err, const char *why)
{
    hf_cluster *c = owner;
    pthread_mutex_lock(&c->lock);
    c->err = err;
    (void)snprintf(c->why, sizeof c->why, "%s", why);
    pthread_mutex_unlock(&c->lock);
    tell_user(c, true);
}

/* ---- life ---- */

hf_err hf_cluster_open(hf_cluster **out, const hf_server_opts *opts,
                       char detail[HF_DETAIL_SIZE])
{
    hf_cluster *c = calloc(1, sizeof *c);
    if (c == NULL) {
        if (detail != NULL)
            (void)snprintf(detail, HF_DETAIL_SIZE, "%s", hf_err_text(HF_NOMEM));
        return HF_NOMEM;
    }
    hf_err err = hf_server_open(&c->given, opts, detail);
    if (err != HF_OK) {
        free(c);
        return err;
    }
    pthread_mutex_init(&c->lock, NULL);
    atomic_init(&c->users, 1);
    c->plain = c->given->url.cluster.n_nodes == 0;
    c->err = c->plain ? HF_OK : HF_CONN;
    (void)snprintf(c->why, sizeof c->why, "%.160s: no node has answered yet",
                   c->given->place);
    *out = c;
    return HF_OK;
}

/* By its user, or one that shares it. */
static void free_cluster(hf_cluster *c)
{
    if (atomic_fetch_sub(&c->users, 1) > 1)
        return;
    for (size_t i = 0; i < c->n_nodes; i++)
        hf_server_close(c->nodes[i].server);
    hf_server_close(c->given);
    pthread_mutex_destroy(&c->lock);
    free(c->nodes);
    free(c);
}

static void on_closed(void *owner)
{
    hf_cluster *c = owner;
    if (--c->handles > 0)
        return;
    void (*cb)(void *) = c->on_closed;
    void *arg = c->closed_arg;
    free_cluster(c);
    if (cb != NULL)
        cb(arg);
}

static void on_news_closed(uv_handle_t *news)
{
    on_closed(news->data);
}

static const hf_slot_hooks hooks = {
    .nodes = nodes_to_ask, .on_map = on_map, .on_vain = on_vain, .on_closed = on_closed};

hf_err hf_cluster_watch(hf_cluster *c, uv_loop_t *loop, void (*on_change)(void *arg),
                        void *arg)
{
    HF_ASSERT(c->watch == NULL);
    if (c->plain)
        return HF_OK;
    hf_err err = hf_slot_watch_open(&c->watch, loop, c->given, &hooks, c);
    if (err != HF_OK)
        return err;
    c->handles = 1;
    if (uv_async_init(loop, &c->news, on_news) != 0) {
        /* hf_cluster_close() ends the watch */
        return HF_SYSTEM;
    }
    c->handles = 2;
    c->news.data = c;
    c->on_change = on_change;
    c->arg = arg;
    pthread_mutex_lock(&c->lock);
    c->watched = true;
    pthread_mutex_unlock(&c->lock);
    hf_slot_watch_again(c->watch);
    return HF_OK;
}

hf_cluster *hf_cluster_share(hf_cluster *c)
{
    atomic_fetch_add(&c->users, 1);
    return c;
}

void hf_cluster_unshare(hf_cluster *c)
{
    if (c != NULL)
        free_cluster(c);
}

void hf_cluster_close(hf_cluster *c, void (*cb)(void *arg), void *arg)
{
    if (c == NULL || c->watch == NULL) {
        if (c != NULL)
            free_cluster(c);
        if (cb != NULL)
            cb(arg);
        return;
    }
    pthread_mutex_lock(&c->lock);
    bool watched = c->watched;
    c->watched = false;
    pthread_mutex_unlock(&c->lock);
    c->on_closed = cb;
    c->closed_arg = arg;
    hf_slot_watch_close(c->watch);
    if (watched)
        uv_close((uv_handle_t *)&c->news, on_news_closed);
}
