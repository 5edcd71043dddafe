/* listener.c - see listener.h. */
#include "lock/listener.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "lock/names.h"
#include "lock/ops.h"
#include "redis/plain.h"

enum {
    /* One wait. If the connection has died unseen, the news only arrives with a renewal;
     * the kernel detects the dead connection. */
    LISTEN_MS = 600000,
    LISTEN_IN_CLUSTER_MS = 10000, /* which also ends waits that no lock needs any more */
    REST_MS = 1000,               /* after a refusal; meanwhile the renewals tell */
    DOUBT_MS = 1000,
    UNBLOCK_FIRST_MS = 2,
    UNBLOCK_LAST_MS = 512
};

struct hf_listener_wait {
    hf_listener_wait *next;
    hf_listener *listener; /* NULL: its connection is closed */
    unsigned slot;
    hf_server *redis;  /* shared */
    hf_client *client; /* NULL: the same */
    hf_client *other;
    unsigned asked; /* requests to end it that are not answered yet */
    bool wanted;    /* as of the last choice */
    bool listening, unblocking, doubt;
    bool deaf;           /* to a tag that was chosen */
    uint64_t rest_ns;    /* nothing is listened to before; 0: at once */
    uint64_t unblock_ns; /* the wait is not ended before; 0: at once */
    uint32_t unblock_ms; /* the last pause before that */
    size_t n_heard;      /* prefixes in the wait that is under way */
    char heard[HF_HEARD_MAX][HF_TAG_PREFIX_SIZE];
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
    if (wait == NULL || wait->redis != tag->redis)
        return false;
    return !wait->listening || is_heard(wait, tag->prefix);
}

bool hf_listener_has_room(const hf_listener *listener, const hf_listener_tag *tag)
{
    const hf_listener_wait *wait = find(listener, tag->slot);
    return wait == NULL ? listener->n_waits < HF_LISTENER_WAITS_MAX
                        : wait->n_heard < HF_HEARD_MAX;
}

/* ---- waits come and go ---- */

static void free_if_done(hf_listener_wait *wait)
{
    if (wait->client == NULL && wait->asked == 0)
        free(wait);
}

static void on_wait_closed(void *arg)
{
    hf_listener_wait *wait = arg;
    hf_listener *listener = wait->listener;
    hf_server_close(wait->redis);
    wait->client = NULL;
    wait->listener = NULL;
    free_if_done(wait);
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
    wait->slot = HF_SLOTS; /* none: its answers mean nothing any more */
    hf_client_close(wait->client, on_wait_closed, wait);
}

static bool is_closed(const hf_listener_wait *wait)
{
    return wait->slot == HF_SLOTS;
}

static void on_client(hf_client *client, hf_err err, const char *detail, void *arg)
{
    hf_listener_wait *wait = arg;
    hf_listener *listener = wait->listener;
    (void)client, (void)detail;
    if (err != HF_OK)
        hf_cluster_doubt(listener->cluster);
    listener->on_turn(listener);
}

/* Without it the renewals still tell. */
static hf_listener_wait *open_wait(hf_listener *listener, const hf_listener_tag *tag)
{
    hf_listener_wait *wait = calloc(1, sizeof *wait);
    if (wait == NULL)
        return NULL;
    wait->listener = listener;
    wait->slot = tag->slot;
    const hf_client_opts opts = {.loop = listener->loop,
                                 .redis = tag->redis,
                                 .blocks = true,
                                 .on_event = on_client,
                                 .arg = wait};
    if (hf_client_open(&wait->client, &opts, NULL) != HF_OK) {
        free(wait);
        return NULL;
    }
    wait->redis = hf_server_share(tag->redis);
    wait->next = listener->waits;
    listener->waits = wait;
    listener->n_waits++;
    listener->open++;
    return wait;
}

/* ---- listening ---- */

static bool may_listen(const hf_listener_wait *wait)
{
    return !wait->listening && wait->rest_ns == 0 && hf_client_ready(wait->client);
}

static void on_heard(const hf_answer *answer, void *arg)
{
    hf_listener_wait *wait = arg;
    hf_listener *listener = wait->listener;
    wait->listening = wait->unblocking = false;
    wait->unblock_ns = wait->unblock_ms = 0;
    if (is_closed(wait))
        return;
    if (answer->err != HF_OK) {
        wait->doubt = true;
        (void)hf_cluster_refused(listener->cluster, wait->redis, answer->err,
                                 answer->detail);
    }
    if (answer->err != HF_OK && answer->err != HF_UNSURE && answer->err != HF_READONLY)
        wait->rest_ns = hf_boot_ns() + REST_MS * HF_MS_NS;
    else if (hf_reply_len(answer->reply) == 2)
        listener->on_message(listener, hf_reply_text(hf_reply_at(answer->reply, 1)));
    listener->on_turn(listener);
}

static void listen_now(hf_listener_wait *wait)
{
    hf_listener *listener = wait->listener;
    const char *prefixes[HF_HEARD_MAX];
    uint32_t ms =
        hf_cluster_is_plain(listener->cluster) ? LISTEN_MS : LISTEN_IN_CLUSTER_MS;
    if (wait->n_heard == 0)
        return;
    for (size_t i = 0; i < wait->n_heard; i++)
        prefixes[i] = wait->heard[i];
    listener->doubt = listener->doubt || wait->doubt;
    wait->doubt = false;
    if (wait->other != NULL)
        ms = hf_plain_wait_ms(wait->other, wait->client, ms);
    wait->listening = hf_op_listen(wait->client, prefixes, wait->n_heard, listener->inbox,
                                   ms, on_heard, wait) == HF_OK;
}

/* ---- ending a wait ---- */

static void pause_before_unblock(hf_listener_wait *wait)
{
    uint32_t ms = wait->unblock_ms == 0 ? UNBLOCK_FIRST_MS : 2 * wait->unblock_ms;
    wait->unblock_ms = ms < UNBLOCK_LAST_MS ? ms : UNBLOCK_LAST_MS;
    wait->unblock_ns = hf_boot_ns() + wait->unblock_ms * HF_MS_NS;
    wait->unblocking = false;
}

/* The wait itself answers when it was ended. Or it has not come yet, on its own
 * connection. An answer that is late, after the next wait has begun, costs at most one
 * more request. */
static void on_unblocked(const hf_answer *answer, void *arg)
{
    hf_listener_wait *wait = arg;
    wait->asked--;
    if (is_closed(wait)) {
        free_if_done(wait);
        return;
    }
    if (!wait->listening || !wait->unblocking ||
        (answer->err == HF_OK && hf_reply_int(answer->reply) != 0))
        return;
    if (answer->err == HF_AUTH) { /* never again: the next waits are short */
        hf_client_unblock_refused(wait->client);
        hf_client_reset(wait->client); /* this one is not */
    }
    pause_before_unblock(wait);
    wait->listener->on_turn(wait->listener);
}

static void unblock(hf_listener_wait *wait)
{
    if (hf_boot_ns() < wait->unblock_ns)
        return;
    wait->unblocking = true;
    if (wait->other != NULL &&
        hf_plain_unblock(wait->other, wait->client, on_unblocked, wait) == HF_OK)
        wait->asked++;
    else
        pause_before_unblock(wait);
}

/* ---- choosing ---- */

bool hf_listener_add(hf_listener *listener, const hf_listener_tag *tag)
{
    hf_listener_wait *wait = find(listener, tag->slot);
    if (tag->redis == NULL)
        return false;
    if (wait != NULL && wait->redis != tag->redis) {
        listener->doubt = listener->doubt || wait->listening || wait->doubt;
        close_wait(listener, wait);
        wait = NULL;
    }
    if (wait == NULL) {
        listener->crowded =
            listener->crowded || listener->n_waits == HF_LISTENER_WAITS_MAX;
        if (listener->n_waits < HF_LISTENER_WAITS_MAX)
            wait = open_wait(listener, tag);
    }
    if (wait == NULL)
        return false;
    wait->wanted = true;
    wait->other = tag->other;
    if (is_heard(wait, tag->prefix))
        return true;
    if (wait->n_heard == HF_HEARD_MAX)
        return false;
    if (wait->listening)
        wait->deaf = true;
    else
        memcpy(wait->heard[wait->n_heard++], tag->prefix, tag->prefix_len + 1);
    return true;
}

/* In a cluster, waits that no tag needs. */
static void close_unused(hf_listener *listener)
{
    for (hf_listener_wait *wait = listener->waits, *next; wait != NULL; wait = next) {
        next = wait->next;
        if (!wait->wanted && (!wait->listening || listener->crowded))
            close_wait(listener, wait);
    }
}

static void choose(hf_listener *listener)
{
    listener->crowded = false;
    for (hf_listener_wait *wait = listener->waits; wait != NULL; wait = wait->next) {
        wait->wanted = wait->deaf = false;
        wait->other = NULL;
        if (!wait->listening)
            wait->n_heard = 0;
    }
    listener->choose(listener);
    if (!hf_cluster_is_plain(listener->cluster))
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
        else if (wait->listening && !wait->unblocking && wait->deaf)
            unblock(wait);
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
    bool again = !wait->unblocking && wait->unblock_ns != 0 && wait->deaf;
    return again ? wait->unblock_ns : UINT64_MAX;
}

uint64_t hf_listener_due_ns(hf_listener *listener)
{
    uint64_t due_ns = listener->doubt ? doubt_due_ns(listener) : UINT64_MAX;
    for (hf_listener_wait *wait = listener->waits; wait != NULL; wait = wait->next)
        if (wait_due_ns(wait) < due_ns)
            due_ns = wait_due_ns(wait);
    return due_ns;
}

void hf_listener_forget(hf_listener *listener, const hf_client *other)
{
    for (hf_listener_wait *wait = listener->waits; wait != NULL; wait = wait->next)
        if (wait->other == other)
            wait->other = NULL;
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
