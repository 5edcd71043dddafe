/* grants.c - how a lock that waits hears that it was granted: by a message in the
 * client's inbox, for which one connection blocks for all tags; or by its next renewal,
 * which says what is true in any case. After the blocking connection was lost everything
 * is renewed at once, because a message may have been lost with it. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "lock/locks.h"

enum {
    /* One wait; who waits in line sends no more than its renewals. A connection that has
     * died unseen costs time, until a renewal tells of the grant, and the kernel looks
     * after it. */
    LISTEN_MS = 600000,
    REST_MS = 1000 /* after a refusal; meanwhile the renewals tell */
};

static bool is_heard(const hf_locks *locks, const char *prefix)
{
    for (size_t i = 0; i < locks->n_heard; i++)
        if (strcmp(locks->heard[i], prefix) == 0)
            return true;
    return false;
}

/* What is to be heard: the tags of all that wait. */
static void choose(hf_locks *locks)
{
    locks->n_heard = 0;
    for (const hf_lock *lock = locks->active; lock != NULL; lock = lock->next)
        if (lock->step == STEP_WAIT && locks->n_heard < HF_HEARD_MAX &&
            !is_heard(locks, lock->prefix))
            memcpy(locks->heard[locks->n_heard++], lock->prefix, lock->prefix_len + 1);
}

/* ---- messages ---- */

static hf_lock *find_hold(hf_lock *lock, const char *hold, size_t len)
{
    while (lock != NULL &&
           (len != HF_HOLD_SIZE - 1 || memcmp(lock->hold, hold, len) != 0))
        lock = lock->next;
    return lock;
}

/* It may be an old one, of a place that was lost. And one line speaks only for itself:
 * where it may not be alone, the next renewal asks them all. */
static void on_granted(hf_locks *locks, hf_lock *lock, uint64_t fence)
{
    if (lock->step != STEP_WAIT || fence <= lock->number)
        return;
    if (lock->enter.reentrant && lock->n_names > 1)
        hf_watchdog_hurry(locks->watchdog, atomic_load(&lock->lease), hf_boot_ns());
    else
        hf_acquire_granted(lock, fence);
}

/* "granted FENCE HOLD ...", "revoked ..." or "forced ...": the latter two only mean that
 * a renewal has news. */
static void on_message(hf_locks *locks, const char *text)
{
    bool granted = strncmp(text, "granted ", 8) == 0;
    const char *at = strchr(text, ' ');
    char *end;
    if (at == NULL)
        return;
    uint64_t fence = strtoull(at, &end, 10);
    while (*end == ' ') {
        const char *hold = end + 1;
        size_t len = strcspn(hold, " ");
        hf_lock *lock = find_hold(locks->active, hold, len);
        hf_lock *held = lock == NULL ? find_hold(locks->resting, hold, len) : NULL;
        if (lock != NULL && granted)
            on_granted(locks, lock, fence);
        else if (held != NULL && !granted)
            hf_watchdog_hurry(locks->watchdog, atomic_load(&held->lease), hf_boot_ns());
        end = (char *)hold + len;
    }
}

static void on_heard(const hf_answer *answer, void *arg)
{
    hf_locks *locks = arg;
    locks->listening = locks->unblocking = false;
    if (answer->err != HF_OK)
        locks->ear_doubt = true;
    if (answer->err != HF_OK && answer->err != HF_UNSURE && answer->err != HF_READONLY)
        locks->ear_rest_ns = hf_boot_ns() + REST_MS * HF_MS_NS;
    else if (hf_reply_len(answer->reply) == 2)
        on_message(locks, hf_reply_text(hf_reply_at(answer->reply, 1)));
    hf_grants_listen(locks);
    hf_locks_settle(locks);
}

/* ---- listening ---- */

static void on_unblocked(const hf_answer *answer, void *arg)
{
    hf_locks *locks = arg;
    if (answer->err != HF_OK)
        locks->unblocking = false;
}

static void on_ear(hf_client *ear, hf_err err, const char *detail, void *arg)
{
    hf_locks *locks = arg;
    (void)detail;
    hf_client_follow(locks->client, ear);
    if (err == HF_OK)
        hf_grants_listen(locks);
    hf_locks_settle(locks);
}

static bool somebody_is_not_heard(const hf_locks *locks)
{
    for (const hf_lock *lock = locks->active; lock != NULL; lock = lock->next)
        if (lock->step == STEP_WAIT && !is_heard(locks, lock->prefix))
            return locks->n_heard < HF_HEARD_MAX;
    return false;
}

static void listen_now(hf_locks *locks)
{
    const char *prefixes[HF_HEARD_MAX];
    choose(locks);
    if (locks->n_heard == 0)
        return;
    for (size_t i = 0; i < locks->n_heard; i++)
        prefixes[i] = locks->heard[i];
    if (locks->ear_doubt)
        hf_watchdog_verify(locks->watchdog);
    locks->ear_doubt = false;
    locks->listening = hf_op_listen(locks->ear, prefixes, locks->n_heard, locks->id,
                                    LISTEN_MS, on_heard, locks) == HF_OK;
}

void hf_grants_listen(hf_locks *locks)
{
    if (locks->closing)
        return;
    if (hf_boot_ns() >= locks->ear_rest_ns)
        locks->ear_rest_ns = 0;
    if (locks->ear == NULL) {
        hf_client_opts opts = locks->client_opts;
        opts.on_event = on_ear;
        /* Without it the renewals still tell. */
        if (hf_client_open(&locks->ear, &opts, NULL) != HF_OK)
            locks->ear = NULL;
        return;
    }
    if (!locks->listening) {
        if (hf_client_ready(locks->ear) && locks->ear_rest_ns == 0)
            listen_now(locks);
    } else if (!locks->unblocking && somebody_is_not_heard(locks)) {
        locks->unblocking =
            hf_redis_unblock(locks->client, locks->ear, on_unblocked, locks) == HF_OK;
    }
}

uint64_t hf_grants_due_ns(const hf_locks *locks)
{
    bool rests = !locks->closing && !locks->listening && locks->ear_rest_ns != 0;
    return rests ? locks->ear_rest_ns : UINT64_MAX;
}

void hf_grants_notes(hf_locks *locks)
{
    for (hf_lock *lock = locks->active, *next; lock != NULL; lock = next) {
        next = lock->next;
        if (lock->step != STEP_WAIT)
            continue;
        if (atomic_exchange(&lock->lost, false))
            hf_acquire_lost(lock);
        else if (atomic_exchange(&lock->granted, false))
            hf_acquire_granted(lock, atomic_load(&lock->fence));
    }
}
