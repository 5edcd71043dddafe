/* hear.c - how the holder of a lock hears that it is taken away, or asked back.
 *
 * What is held for longer than a moment is listened for: by one more connection, which
 * blocks on inboxes of its own (ear.h). It belongs to the watchdog's thread, because
 * nobody may be running the client's loop. A lock that is given back within that moment
 * costs nothing but its place in a list, and a message that comes meanwhile stays in its
 * inbox. A message only says that a renewal has news: it is renewed at once.
 *
 * The lists are under `lock`. A lock is in one of them from the grant until just before
 * its lease is dropped, so a lease that is found there is a live one. */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "lock/locks.h"

enum {
    MOMENT_MS = 100,
    UNKNOWN_MS = 60000 /* so long a message may be of a grant that is not known yet */
};

/* ---- the lists, under lock ---- */

static void put_last(hf_hear *hear, hf_hear_list *list, hf_lock *lock)
{
    lock->hear_list = list;
    lock->hear_next = NULL;
    lock->hear_prev = list->last;
    if (list->last != NULL)
        list->last->hear_next = lock;
    else
        list->first = lock;
    list->last = lock;
    if (list == &hear->old &&
        !(hear->ear.listening && hf_ear_hears(&hear->ear, lock->prefix)))
        hear->wants = true;
}

static void take_out(hf_lock *lock)
{
    hf_hear_list *list = lock->hear_list;
    if (list == NULL)
        return;
    if (lock->hear_next != NULL)
        lock->hear_next->hear_prev = lock->hear_prev;
    else
        list->last = lock->hear_prev;
    if (lock->hear_prev != NULL)
        lock->hear_prev->hear_next = lock->hear_next;
    else
        list->first = lock->hear_next;
    lock->hear_list = NULL;
}

static hf_lock *find(const hf_hear_list *list, const char *hold, size_t len)
{
    hf_lock *lock = list->first;
    while (lock != NULL &&
           (len != HF_HOLD_SIZE - 1 || memcmp(lock->hold, hold, len) != 0))
        lock = lock->hear_next;
    return lock;
}

/* ---- any thread ---- */

void hf_hear_begin(hf_lock *lock)
{
    hf_hear *hear = &lock->locks->hear;
    if (lock->cell) /* which does not say whose it is */
        return;
    lock->heard_ns = hf_boot_ns() + MOMENT_MS * HF_MS_NS;
    uv_mutex_lock(&hear->lock);
    put_last(hear, &hear->young, lock);
    bool called = hear->called;
    hear->called = true;
    uv_mutex_unlock(&hear->lock);
    if (!called)
        hf_watchdog_call(lock->locks->watchdog, lock->heard_ns);
}

void hf_hear_end(hf_lock *lock)
{
    hf_hear *hear = &lock->locks->hear;
    uv_mutex_lock(&hear->lock);
    take_out(lock);
    uv_mutex_unlock(&hear->lock);
}

/* ---- the watchdog's thread ---- */

static void choose(hf_ear *ear)
{
    hf_hear *hear = ear->arg;
    uv_mutex_lock(&hear->lock);
    for (const hf_lock *lock = hear->old.first; lock != NULL; lock = lock->hear_next)
        hf_ear_add(ear, lock->prefix, lock->prefix_len);
    hear->wants = false;
    uv_mutex_unlock(&hear->lock);
}

static bool is_deaf(hf_ear *ear)
{
    const hf_hear *hear = ear->arg;
    return hear->wants;
}

/* "revoked FENCE HOLD ..." or "forced FENCE HOLD ...". A hold that is not known was given
 * back, or its grant was not answered yet: then it is renewed when it is listened for. */
static void on_message(hf_ear *ear, const char *text)
{
    hf_hear *hear = ear->arg;
    uint64_t now_ns = hf_boot_ns();
    uv_mutex_lock(&hear->lock);
    for (const char *at = text + strcspn(text, " "); *at == ' ';) {
        const char *hold = at + 1;
        size_t len = strcspn(hold, " ");
        hf_lock *lock = find(&hear->old, hold, len);
        lock = lock != NULL ? lock : find(&hear->young, hold, len);
        if (lock != NULL)
            hf_watchdog_hurry(hear->watchdog, atomic_load(&lock->lease), now_ns);
        else
            hear->unknown_ns = now_ns;
        at = hold + len;
    }
    uv_mutex_unlock(&hear->lock);
}

static void on_doubt(hf_ear *ear)
{
    const hf_hear *hear = ear->arg;
    hf_watchdog_verify(hear->watchdog);
}

static void on_turn(hf_ear *ear)
{
    hf_hear *hear = ear->arg;
    if (hear->stopped)
        return;
    hf_ear_listen(ear, hear->client);
    uint64_t due_ns = hf_ear_due_ns(ear);
    if (due_ns != UINT64_MAX)
        hf_watchdog_call(hear->watchdog, due_ns);
}

/* What has been held for long enough is listened for from now on. */
static void grow_old(hf_hear *hear, uint64_t now_ns)
{
    hf_lock *lock;
    bool doubt =
        hear->unknown_ns != 0 && now_ns - hear->unknown_ns < UNKNOWN_MS * HF_MS_NS;
    uv_mutex_lock(&hear->lock);
    while ((lock = hear->young.first) != NULL && lock->heard_ns <= now_ns) {
        take_out(lock);
        put_last(hear, &hear->old, lock);
        if (doubt)
            hf_watchdog_hurry(hear->watchdog, atomic_load(&lock->lease), now_ns);
    }
    hear->called = lock != NULL;
    uint64_t next_ns = lock != NULL ? lock->heard_ns : 0;
    uv_mutex_unlock(&hear->lock);
    if (next_ns != 0)
        hf_watchdog_call(hear->watchdog, next_ns);
}

void hf_hear_called(hf_watchdog *watchdog, hf_client *client, uv_loop_t *loop, void *arg)
{
    hf_lock_client *locks = arg;
    hf_hear *hear = &locks->hear;
    hear->watchdog = watchdog;
    hear->client = client;
    hear->ear.opts.loop = loop;
    grow_old(hear, hf_boot_ns());
    if (hear->wants || hear->ear.listening || hear->ear.client != NULL)
        on_turn(&hear->ear);
}

void hf_hear_client(hf_client *client, hf_err err, const char *detail, void *arg)
{
    hf_lock_client *locks = arg;
    (void)detail;
    atomic_fetch_add(&locks->epoch, 1); /* another server's lines count otherwise */
    if (err == HF_OK)
        hf_ear_follow(&locks->hear.ear, client);
}

void hf_hear_stop(void *arg)
{
    hf_lock_client *locks = arg;
    hf_hear *hear = &locks->hear;
    hear->stopped = true;
    hf_client_close(hear->ear.client, NULL, NULL);
}

/* ---- life ---- */

hf_err hf_hear_init(hf_lock_client *locks)
{
    hf_hear *hear = &locks->hear;
    (void)snprintf(hear->inbox, sizeof hear->inbox, "%s/held", locks->id);
    hear->ear = (hf_ear){.opts = locks->client_opts,
                         .inbox = hear->inbox,
                         .choose = choose,
                         .is_deaf = is_deaf,
                         .on_message = on_message,
                         .on_doubt = on_doubt,
                         .on_turn = on_turn,
                         .arg = hear};
    return uv_mutex_init(&hear->lock) == 0 ? HF_OK : HF_SYSTEM;
}

void hf_hear_done(hf_lock_client *locks)
{
    uv_mutex_destroy(&locks->hear.lock);
}
