/* notices.c - see notices.h.
 *
 * A listener (redis/listener.h) serves locks that are held for longer than a moment, on
 * inboxes of their own. A lock that is released within that moment only costs its place
 * in a list, and a message that comes meanwhile stays in its inbox. A message only says
 * that a renewal has news, so the lock is renewed at once. The lists are under `lock`. A
 * lock is in one of them from the grant until just before its lease is dropped, so every
 * lease found there is alive. */
#include "lock/notices.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "lock/client.h"
#include "lock/lock.h"
#include "lock/nodes.h"
#include "lock/ops.h"
#include "lock/watchdog/watchdog.h"

enum {
    MOMENT_MS = 100,
    UNKNOWN_MS =
        60000 /* how long a message may belong to a grant that is not known yet */
};

/* ---- the lists, under lock ---- */

static hf_listener_tag tag_of(const hf_lock *lock)
{
    const hf_lock_node *node = atomic_load(&lock->node);
    return (hf_listener_tag){.prefix = lock->prefix,
                             .prefix_len = lock->prefix_len,
                             .slot = lock->slot,
                             .redis = node->base.redis};
}

static void put_last(hf_notices_list *list, hf_lock *lock)
{
    lock->held.list = list;
    lock->held.next = NULL;
    lock->held.prev = list->last;
    if (list->last != NULL)
        list->last->held.next = lock;
    else
        list->first = lock;
    list->last = lock;
}

/* On the watchdog's thread. */
static void put_old(hf_notices *notices, hf_lock *lock)
{
    const hf_listener_tag tag = tag_of(lock);
    put_last(&notices->old, lock);
    if (!hf_listener_hears(&notices->listener, &tag) &&
        hf_listener_has_room(&notices->listener, &tag))
        notices->wants = true;
}

static void unlist(hf_lock *lock)
{
    hf_notices_list *list = lock->held.list;
    if (list == NULL)
        return;
    if (lock->held.next != NULL)
        lock->held.next->held.prev = lock->held.prev;
    else
        list->last = lock->held.prev;
    if (lock->held.prev != NULL)
        lock->held.prev->held.next = lock->held.next;
    else
        list->first = lock->held.next;
    lock->held.list = NULL;
}

static hf_lock *find_hold(const hf_notices_list *list, const char *hold, size_t len)
{
    hf_lock *lock = list->first;
    while (lock != NULL &&
           (len != HF_HOLD_SIZE - 1 || memcmp(lock->hold, hold, len) != 0))
        lock = lock->held.next;
    return lock;
}

/* ---- any thread ---- */

void hf_notices_begin(hf_lock *lock)
{
    hf_notices *notices = &lock->locks->notices;
    if (lock->simple) /* which does not say whose it is */
        return;
    lock->held.heard_ns = hf_boot_ns() + MOMENT_MS * HF_MS_NS;
    uv_mutex_lock(&notices->lock);
    put_last(&notices->young, lock);
    bool called = notices->called;
    notices->called = true;
    uv_mutex_unlock(&notices->lock);
    if (!called)
        hf_watchdog_call(lock->locks->watchdog, lock->held.heard_ns);
}

void hf_notices_end(hf_lock *lock)
{
    hf_notices *notices = &lock->locks->notices;
    uv_mutex_lock(&notices->lock);
    unlist(lock);
    uv_mutex_unlock(&notices->lock);
}

/* ---- the watchdog's thread ---- */

static void choose(hf_listener *listener)
{
    hf_notices *notices = listener->arg;
    uv_mutex_lock(&notices->lock);
    for (const hf_lock *lock = notices->old.first; lock != NULL; lock = lock->held.next) {
        const hf_listener_tag tag = tag_of(lock);
        (void)hf_listener_add(listener, &tag); /* without room its renewals tell */
    }
    notices->wants = false;
    uv_mutex_unlock(&notices->lock);
}

static bool is_deaf(hf_listener *listener)
{
    const hf_notices *notices = listener->arg;
    return notices->wants;
}

/* "revoked FENCE HOLD ..." or "forced FENCE HOLD ...". A hold that is not known was given
 * back, or its grant was not answered yet: then it is renewed when it is listened for. */
static void on_message(hf_listener *listener, const char *key, const char *text)
{
    (void)key;
    hf_notices *notices = listener->arg;
    uint64_t now_ns = hf_boot_ns();
    uv_mutex_lock(&notices->lock);
    for (const char *at = text + strcspn(text, " "); *at == ' ';) {
        const char *hold = at + 1;
        size_t len = strcspn(hold, " ");
        hf_lock *lock = find_hold(&notices->old, hold, len);
        lock = lock != NULL ? lock : find_hold(&notices->young, hold, len);
        if (lock != NULL)
            hf_watchdog_hurry(notices->watchdog, atomic_load(&lock->held.lease), now_ns);
        else
            notices->unknown_ns = now_ns;
        at = hold + len;
    }
    uv_mutex_unlock(&notices->lock);
}

static void on_doubt(hf_listener *listener)
{
    const hf_notices *notices = listener->arg;
    hf_watchdog_verify(notices->watchdog);
}

static void on_turn(hf_listener *listener)
{
    const hf_notices *notices = listener->arg;
    if (listener->on_closed != NULL)
        return;
    hf_listener_listen(listener);
    uint64_t due_ns = hf_listener_due_ns(listener);
    if (due_ns != UINT64_MAX)
        hf_watchdog_call(notices->watchdog, due_ns);
}

/* Starts to listen for locks that have been held for long enough. */
static void grow_old(hf_notices *notices, uint64_t now_ns)
{
    hf_lock *lock;
    bool doubt =
        notices->unknown_ns != 0 && now_ns - notices->unknown_ns < UNKNOWN_MS * HF_MS_NS;
    uv_mutex_lock(&notices->lock);
    while ((lock = notices->young.first) != NULL && lock->held.heard_ns <= now_ns) {
        unlist(lock);
        put_old(notices, lock);
        if (doubt)
            hf_watchdog_hurry(notices->watchdog, atomic_load(&lock->held.lease), now_ns);
    }
    notices->called = lock != NULL;
    uint64_t next_ns = lock != NULL ? lock->held.heard_ns : 0;
    uv_mutex_unlock(&notices->lock);
    if (next_ns != 0)
        hf_watchdog_call(notices->watchdog, next_ns);
}

void hf_notices_turn(hf_lock_client *locks, hf_watchdog *watchdog, uv_loop_t *loop)
{
    hf_notices *notices = &locks->notices;
    uint64_t changes = hf_cluster_changes(locks->nodes.cluster);
    notices->watchdog = watchdog;
    notices->listener.loop = loop;
    grow_old(notices, hf_boot_ns());
    notices->wants = notices->wants || notices->changes != changes;
    notices->changes = changes;
    if (notices->wants || notices->listener.waits != NULL)
        on_turn(&notices->listener);
}

void hf_notices_stop(hf_lock_client *locks, void (*cb)(void *arg), void *arg)
{
    hf_listener_close(&locks->notices.listener, cb, arg);
}

/* ---- life ---- */

hf_err hf_notices_init(hf_lock_client *locks)
{
    hf_notices *notices = &locks->notices;
    notices->listener = (hf_listener){.nodes = &locks->nodes,
                                      .second = true,
                                      .wait_ms = HF_LISTEN_MS,
                                      .waits_max = HF_LISTEN_WAITS,
                                      .choose = choose,
                                      .is_deaf = is_deaf,
                                      .on_message = on_message,
                                      .on_doubt = on_doubt,
                                      .on_turn = on_turn,
                                      .arg = notices};
    (void)snprintf(notices->listener.suffix, sizeof notices->listener.suffix,
                   "in:%s/held", locks->id);
    return uv_mutex_init(&notices->lock) == 0 ? HF_OK : HF_SYSTEM;
}

void hf_notices_done(hf_lock_client *locks)
{
    uv_mutex_destroy(&locks->notices.lock);
}
