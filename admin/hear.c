/* hear.c - see hear.h. */
#include "admin/hear.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/id.h"
#include "redis/listener.h"

enum {
    LISTEN_MS = 10000, /* one wait */
    WAITS = 32         /* in a cluster: slots that are heard at a time */
};

/* A queue that is listened to. */
typedef struct channel {
    struct channel *next;
    hf_queue queue;
} channel;

typedef struct hf_hearing {
    hf_admin *admin;
    hf_told_fn told;
    void *arg;
    char client[HF_NEW_ID_SIZE];
    channel *channels; /* owned */
    hf_listener listener;
    bool wants;            /* a channel is not heard */
    hf_run_waiter *waiter; /* of the wait under way; or NULL */
    bool heard;            /* since the last wait */
    uv_async_t wakeup;
} hf_hearing;

static void end_wait(hf_hearing *h)
{
    hf_run_waiter *waiter = h->waiter;
    h->heard = true;
    h->waiter = NULL;
    if (waiter != NULL)
        hf_run_loop_done(&h->admin->run, waiter);
}

/* ---- the listener ---- */

static hf_listener_tag tag_of(hf_hearing *h, const hf_queue *queue)
{
    hf_nodes *nodes = &h->admin->nodes;
    unsigned slot = hf_nodes_slot(nodes, queue->prefix, queue->prefix_len);
    return (hf_listener_tag){.prefix = queue->prefix,
                             .prefix_len = queue->prefix_len,
                             .slot = slot,
                             .redis = hf_nodes_find(nodes, slot)->redis};
}

static void choose(hf_listener *listener)
{
    hf_hearing *h = listener->arg;
    h->wants = false;
    for (const channel *c = h->channels; c != NULL; c = c->next) {
        const hf_listener_tag tag = tag_of(h, &c->queue);
        (void)hf_listener_add(listener, &tag); /* without room its queue is asked */
    }
}

static bool is_deaf(hf_listener *listener)
{
    const hf_hearing *h = listener->arg;
    return h->wants;
}

static void on_message(hf_listener *listener, const char *key, const char *id)
{
    hf_hearing *h = listener->arg;
    for (const channel *c = h->channels; c != NULL; c = c->next)
        if (strncmp(key, c->queue.prefix, c->queue.prefix_len) == 0) {
            h->told(&c->queue, id, h->arg);
            return;
        }
}

static void on_doubt(hf_listener *listener)
{
    (void)listener; /* the user looks when its next look is due */
}

/* A connection that came may have missed a hint: the user looks. */
static void on_turn(hf_listener *listener)
{
    hf_listener_listen(listener);
    end_wait(listener->arg);
}

/* ---- for the user ---- */

static channel **find(hf_hearing *h, const hf_queue *queue)
{
    channel **at = &h->channels;
    while (*at != NULL && strcmp((*at)->queue.prefix, queue->prefix) != 0)
        at = &(*at)->next;
    return at;
}

void hf_hearing_drop(hf_admin *admin, const hf_queue *queue)
{
    channel **at = find(admin->hearing, queue), *c = *at;
    if (c == NULL)
        return;
    *at = c->next;
    free(c);
}

bool hf_hearing_has(hf_admin *admin, const hf_queue *queue)
{
    hf_hearing *h = admin->hearing;
    channel **at = find(h, queue);
    const hf_listener_tag tag = tag_of(h, queue);
    if (*at == NULL) {
        *at = calloc(1, sizeof **at);
        if (*at == NULL)
            return false;
        (*at)->queue = *queue;
    }
    h->wants = h->wants || (!hf_listener_hears(&h->listener, &tag) &&
                            hf_listener_has_room(&h->listener, &tag));
    hf_listener_listen(&h->listener);
    return hf_listener_hears_now(&h->listener, &tag);
}

/* ---- life ---- */

static void on_wakeup(uv_async_t *wakeup)
{
    end_wait(wakeup->data);
}

hf_err hf_hearing_open(hf_admin *admin, hf_told_fn told, void *arg)
{
    hf_id_maker ids;
    hf_hearing *h = calloc(1, sizeof *h);
    if (h == NULL)
        return HF_NOMEM;
    h->admin = admin;
    h->told = told;
    h->arg = arg;
    hf_err err = hf_id_maker_init(&ids);
    if (err == HF_OK && uv_async_init(admin->run.uv, &h->wakeup, on_wakeup) != 0)
        err = HF_SYSTEM;
    if (err != HF_OK) {
        free(h);
        return err;
    }
    hf_id_next(&ids, h->client);
    h->wakeup.data = h;
    h->listener = (hf_listener){.nodes = &admin->nodes,
                                .loop = admin->run.uv,
                                .wait_ms = LISTEN_MS,
                                .waits_max = WAITS,
                                .choose = choose,
                                .is_deaf = is_deaf,
                                .on_message = on_message,
                                .on_doubt = on_doubt,
                                .on_turn = on_turn,
                                .arg = h};
    (void)snprintf(h->listener.suffix, sizeof h->listener.suffix, "told:%s", h->client);
    admin->hearing = h;
    return HF_OK;
}

static void on_wakeup_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static void on_listener_closed(void *arg)
{
    hf_hearing *h = arg;
    uv_close((uv_handle_t *)&h->wakeup, on_wakeup_closed);
}

void hf_hearing_close(hf_admin *admin)
{
    hf_hearing *h = admin->hearing;
    if (h == NULL)
        return;
    while (h->channels != NULL)
        hf_hearing_drop(admin, &h->channels->queue);
    admin->hearing = NULL;
    hf_listener_close(&h->listener, on_listener_closed, h);
}

const char *hf_hearing_client(const hf_admin *admin)
{
    return admin->hearing->client;
}

void hf_hearing_wait(hf_admin *admin, uint64_t until_ns)
{
    hf_hearing *h = admin->hearing;
    hf_run_waiter waiter = {.submits = true};
    hf_listener_listen(&h->listener);
    uint64_t due_ns = hf_listener_due_ns(&h->listener);
    if (!h->heard) {
        h->waiter = &waiter;
        (void)hf_run_loop_await(&admin->run, &waiter,
                                due_ns < until_ns ? due_ns : until_ns);
        h->waiter = NULL;
    }
    h->heard = false;
}

void hf_hearing_wake(hf_admin *admin)
{
    (void)uv_async_send(&admin->hearing->wakeup);
}
