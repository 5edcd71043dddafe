/* listener.c - see listener.h. */
#include "redis/listener.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "redis/blocking.h"
#include "redis/send.h"

enum {
    IN_CLUSTER_MS =
        10000,        /* one wait; which also ends those that no list needs any more */
    MARGIN_MS = 1000, /* for the answer to a wait that ended */
    REST_MS = 1000,   /* after a refusal */
    DOUBT_MS = 1000,
    KEY_SIZE = HF_LISTENER_PREFIX_SIZE + HF_LISTENER_SUFFIX_SIZE
};

struct hf_listener_wait {
    hf_listener_wait *next;
    hf_listener *listener;
    unsigned slot; /* HF_SLOTS: it is being closed, its answers mean nothing any more */
    hf_blocking *blocking; /* owned */
    bool wanted;           /* as of the last choice */
    bool listening, doubt;
    bool deaf; /* it has to end: a chosen list is not in it, or another needs its room */
    uint64_t rest_ns;    /* nothing is listened to before; 0: at once */
    size_t n_heard, cap; /* prefixes in the wait that is under way */
    char (*heard)[HF_LISTENER_PREFIX_SIZE]; /* owned */
};

static hf_listener_wait *find(const hf_listener *listener, unsigned slot)
{
    hf_listener_wait *wait = listener->waits;
    while (wait != NULL && wait->slot != slot)
        wait = wait->next;
    return wait;
}

static bool is_heard(const hf_listener_wait *wait, const char *prefix)
{
    for (size_t i = 0; i < wait->n_heard; i++)
        if (strcmp(wait->heard[i], prefix) == 0)
            return true;
    return false;
}

bool hf_listener_hears(const hf_listener *listener, const hf_listener_tag *tag)
{
    const hf_listener_wait *wait = find(listener, tag->slot);
    if (tag->redis == NULL)
        return true;
    if (wait == NULL || wait->blocking->redis != tag->redis)
        return false;
    return !wait->listening || is_heard(wait, tag->prefix);
}

bool hf_listener_hears_now(const hf_listener *listener, const hf_listener_tag *tag)
{
    const hf_listener_wait *wait = find(listener, tag->slot);
    return wait != NULL && wait->listening && hf_listener_hears(listener, tag);
}

bool hf_listener_has_room(const hf_listener *listener, const hf_listener_tag *tag)
{
    const hf_listener_wait *wait = find(listener, tag->slot);
    return wait == NULL ? listener->n_waits < listener->waits_max
                        : wait->n_heard < HF_HEARD_MAX;
}

/* ---- waits come and go ---- */

static void on_wait_closed(void *arg)
{
    hf_listener_wait *wait = arg;
    hf_listener *listener = wait->listener;
    free(wait->heard);
    free(wait);
    if (--listener->open == 0 && listener->on_closed != NULL)
        listener->on_closed(listener->closed_arg);
}

static void close_wait(hf_listener *listener, hf_listener_wait *wait)
{
    hf_listener_wait **at = &listener->waits;
    while (*at != wait)
        at = &(*at)->next;
    *at = wait->next;
    listener->n_waits--;
    wait->slot = HF_SLOTS;
    hf_blocking_close(wait->blocking, on_wait_closed);
}

static void on_client(hf_client *client, hf_err err, const char *detail, void *arg)
{
    hf_listener_wait *wait = arg;
    hf_listener *listener = wait->listener;
    (void)client, (void)detail;
    if (err != HF_OK)
        hf_cluster_doubt(listener->nodes->cluster);
    listener->on_turn(listener);
}

/* Its wait could not be ended. */
static void on_pause(void *arg)
{
    const hf_listener_wait *wait = arg;
    wait->listener->on_turn(wait->listener);
}

/* NULL: no memory. */
static hf_listener_wait *open_wait(hf_listener *listener, const hf_listener_tag *tag)
{
    hf_listener_wait *wait = calloc(1, sizeof *wait);
    if (wait == NULL)
        return NULL;
    wait->listener = listener;
    wait->slot = tag->slot;
    if (hf_blocking_open(&wait->blocking, listener->loop, tag->redis, on_client, on_pause,
                         wait, NULL) != HF_OK) {
        free(wait);
        return NULL;
    }
    wait->next = listener->waits;
    listener->waits = wait;
    listener->n_waits++;
    listener->open++;
    return wait;
}

/* ---- listening ---- */

static bool may_listen(const hf_listener_wait *wait)
{
    return !wait->listening && wait->rest_ns == 0 &&
           hf_client_ready(wait->blocking->client);
}

static void on_heard(const hf_answer *answer, void *arg)
{
    hf_listener_wait *wait = arg;
    hf_listener *listener = wait->listener;
    wait->listening = false;
    if (wait->slot == HF_SLOTS)
        return;
    hf_blocking_answered(wait->blocking);
    if (answer->err != HF_OK) {
        wait->doubt = true;
        (void)hf_cluster_refused(listener->nodes->cluster, wait->blocking->redis,
                                 answer->err, answer->detail);
    }
    if (answer->err != HF_OK && answer->err != HF_UNSURE && answer->err != HF_READONLY)
        wait->rest_ns = hf_boot_ns() + REST_MS * HF_MS_NS;
    else if (hf_reply_len(answer->reply) == 2)
        listener->on_message(listener, hf_reply_text(hf_reply_at(answer->reply, 0)),
                             hf_reply_text(hf_reply_at(answer->reply, 1)));
    listener->on_turn(listener);
}

static hf_client *other_of(const hf_listener_wait *wait)
{
    const hf_listener *listener = wait->listener;
    return hf_nodes_client(listener->nodes, wait->blocking->redis, listener->second);
}

static hf_err block(hf_listener_wait *wait, uint32_t ms)
{
    hf_args a;
    char keys[HF_HEARD_MAX][KEY_SIZE], seconds[24];
    hf_args_init(&a, wait->n_heard + 2, 0);
    (void)snprintf(seconds, sizeof seconds, "%u.%03u", ms / 1000u, ms % 1000u);
    hf_args_text(&a, "BLPOP");
    for (size_t i = 0; i < wait->n_heard; i++) {
        (void)snprintf(keys[i], KEY_SIZE, "%s%s", wait->heard[i], wait->listener->suffix);
        hf_args_text(&a, keys[i]);
    }
    hf_args_text(&a, seconds);
    return hf_send_command(wait->blocking->client, &a, ms + MARGIN_MS, on_heard, wait);
}

static void listen_now(hf_listener_wait *wait)
{
    hf_listener *listener = wait->listener;
    uint32_t ms = listener->wait_ms;
    if (wait->n_heard == 0)
        return;
    if (!hf_cluster_is_plain(listener->nodes->cluster) && ms > IN_CLUSTER_MS)
        ms = IN_CLUSTER_MS;
    listener->doubt = listener->doubt || wait->doubt;
    wait->doubt = false;
    wait->listening =
        block(wait, hf_blocking_ms(wait->blocking, other_of(wait), ms)) == HF_OK;
}

/* ---- choosing ---- */

static bool hear_too(hf_listener_wait *wait, const hf_listener_tag *tag)
{
    if (wait->n_heard == wait->cap) {
        size_t cap = wait->cap == 0 ? 1 : 2 * wait->cap;
        void *heard = realloc(wait->heard, cap * sizeof *wait->heard);
        if (heard == NULL)
            return false;
        wait->heard = heard;
        wait->cap = cap;
    }
    memcpy(wait->heard[wait->n_heard++], tag->prefix, tag->prefix_len + 1);
    return true;
}

bool hf_listener_add(hf_listener *listener, const hf_listener_tag *tag)
{
    hf_listener_wait *wait = find(listener, tag->slot);
    if (tag->redis == NULL)
        return false;
    if (wait != NULL && wait->blocking->redis != tag->redis) {
        listener->doubt = listener->doubt || wait->listening || wait->doubt;
        close_wait(listener, wait);
        wait = NULL;
    }
    if (wait == NULL) {
        listener->crowded = listener->crowded || listener->n_waits == listener->waits_max;
        if (listener->n_waits < listener->waits_max)
            wait = open_wait(listener, tag);
    }
    if (wait == NULL)
        return false;
    wait->wanted = true;
    if (is_heard(wait, tag->prefix))
        return true;
    if (wait->n_heard == HF_HEARD_MAX)
        return false;
    if (!wait->listening)
        return hear_too(wait, tag);
    wait->deaf = true;
    return true;
}

/* In a cluster, waits that no list needs. One that is under way has to end first, at once
 * where another list needs its room: it may be answered with a message. */
static void close_unused(hf_listener *listener)
{
    for (hf_listener_wait *wait = listener->waits, *next; wait != NULL; wait = next) {
        next = wait->next;
        if (wait->wanted)
            continue;
        if (wait->listening)
            wait->deaf = listener->crowded;
        else
            close_wait(listener, wait);
    }
}

static void choose(hf_listener *listener)
{
    listener->crowded = false;
    for (hf_listener_wait *wait = listener->waits; wait != NULL; wait = wait->next) {
        wait->wanted = wait->deaf = false;
        if (!wait->listening)
            wait->n_heard = 0;
    }
    listener->choose(listener);
    if (!hf_cluster_is_plain(listener->nodes->cluster))
        close_unused(listener);
}

/* ---- from outside ---- */

/* The first at once. Each leads to a renewal of all, which may show that a slot is
 * elsewhere again. */
static uint64_t doubt_due_ns(const hf_listener *listener)
{
    return listener->doubted_ns == 0 ? 0 : listener->doubted_ns + DOUBT_MS * HF_MS_NS;
}

void hf_listener_listen(hf_listener *listener)
{
    bool again = false;
    if (listener->on_closed != NULL)
        return;
    for (hf_listener_wait *wait = listener->waits; wait != NULL; wait = wait->next) {
        if (hf_boot_ns() >= wait->rest_ns)
            wait->rest_ns = 0;
        again = again || may_listen(wait);
    }
    if (again || listener->is_deaf(listener))
        choose(listener);
    for (hf_listener_wait *wait = listener->waits; wait != NULL; wait = wait->next) {
        if (may_listen(wait))
            listen_now(wait);
        else if (wait->listening && wait->deaf)
            (void)hf_blocking_end(wait->blocking, other_of(wait));
    }
    if (listener->doubt && hf_boot_ns() >= doubt_due_ns(listener)) {
        listener->doubt = false;
        listener->doubted_ns = hf_boot_ns();
        listener->on_doubt(listener);
    }
}

static uint64_t wait_due_ns(const hf_listener_wait *wait)
{
    if (!wait->listening)
        return wait->rest_ns != 0 ? wait->rest_ns : UINT64_MAX;
    const hf_blocking *b = wait->blocking;
    return !b->ending && b->pause_until_ns != 0 && wait->deaf ? b->pause_until_ns
                                                              : UINT64_MAX;
}

uint64_t hf_listener_due_ns(hf_listener *listener)
{
    uint64_t due_ns = listener->doubt ? doubt_due_ns(listener) : UINT64_MAX;
    for (hf_listener_wait *wait = listener->waits; wait != NULL; wait = wait->next)
        if (wait_due_ns(wait) < due_ns)
            due_ns = wait_due_ns(wait);
    return due_ns;
}

void hf_listener_close(hf_listener *listener, void (*cb)(void *arg), void *arg)
{
    listener->on_closed = cb;
    listener->closed_arg = arg;
    if (listener->open == 0) {
        cb(arg);
        return;
    }
    while (listener->waits != NULL)
        close_wait(listener, listener->waits);
}
