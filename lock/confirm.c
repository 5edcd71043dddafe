/* confirm.c - how many replicas have a lock that was granted (wait_replicas).
 *
 * WAIT blocks its connection, and counts the replicas that have what that same connection
 * has written. So it has a connection of its own, which is opened at its first use, and
 * each entry is written there once more before. One round asks for all locks that want
 * the same number of replicas; later ones wait for the next round.
 *
 *   STEP_CONFIRM: waits for a round -> in_round -> held, given back, or the next round */
#include <stdio.h>

#include "base/base.h"
#include "base/clock.h"
#include "lock/locks.h"
#include "redis/send.h"

enum { MARGIN_MS = 500 /* for the answer to a WAIT that took all its time */ };

/* ---- the end of a round ---- */

/* Nothing was done, or the result is unknown: the next round asks again, until the
 * limit. */
static bool may_pass(hf_err err)
{
    return err == HF_NOSCRIPT || err == HF_DEADLINE || err == HF_CONN || err == HF_UNSURE;
}

static void conclude(hf_lock *lock, const hf_answer *answer)
{
    char detail[HF_DETAIL_SIZE];
    int64_t have = answer->err == HF_OK ? hf_reply_int(answer->reply) : 0;
    hf_err err = answer->err != HF_OK ? answer->err : lock->kept;
    lock->in_round = false;
    if (may_pass(err))
        return;
    if (err == HF_LOST) {
        hf_acquire_lost(lock);
    } else if (err != HF_OK) {
        hf_acquire_fail(lock, err,
                        answer->err != HF_OK ? answer->detail : hf_err_text(err));
    } else if (have < lock->wait_replicas) {
        (void)snprintf(detail, sizeof detail, "%lld of %u replicas have it",
                       (long long)have, lock->wait_replicas);
        hf_acquire_fail(lock, HF_MISCONF, detail);
    } else {
        hf_acquire_confirmed(lock);
    }
}

static void on_confirmed(const hf_answer *answer, void *arg)
{
    hf_lock_client *locks = arg;
    locks->confirming = false;
    for (hf_lock *lock = locks->active, *next; lock != NULL; lock = next) {
        next = lock->next;
        if (lock->step == STEP_CONFIRM && lock->in_round)
            conclude(lock, answer);
    }
    hf_confirm_pump(locks);
    hf_lock_client_end_turn(locks);
}

static void on_kept(const hf_answer *answer, void *arg)
{
    hf_lock *lock = arg;
    hf_lock_renewed renewed;
    hf_lease_note what;
    lock->in_flight--;
    lock->kept = hf_lock_renewed_read(answer, &renewed);
    if (renewed.now_ms > 0)
        hf_lock_client_clock(lock->locks, renewed.now_ms, answer->sent_ns);
    if (lock->kept == HF_OK) {
        hf_err one = hf_lock_renewed_next(&renewed, 0, &what);
        lock->kept = one == HF_CANCEL ? HF_OK : one == HF_IN_LINE ? HF_LOST : one;
    }
    if (lock->step == STEP_RELEASE)
        hf_release_answered(lock);
}

/* ---- its beginning ---- */

/* For longer than any renewal before, or nothing would be written. */
static hf_err write_again(hf_lock *lock)
{
    hf_lock_client *locks = lock->locks;
    const hf_lock_renewal item = {.prefix = {lock->prefix, lock->prefix_len},
                                  .owner = lock->owner,
                                  .hold = lock->hold,
                                  .name = lock->names[0],
                                  .lease_ms =
                                      atomic_load(&lock->lease_ms) + ++lock->tries,
                                  .simple = lock->simple};
    return hf_op_lock_renew(locks->confirmer, &item, 1, hf_lock_client_not_after(locks),
                            0, on_kept, lock);
}

static hf_err send_wait(hf_lock_client *locks, uint32_t replicas)
{
    hf_args a;
    if (!hf_args_init(&a, 3, 2))
        return HF_NOMEM;
    hf_args_text(&a, "WAIT");
    hf_args_int(&a, replicas);
    const uint32_t most_ms = locks->redis->request_timeout_ms;
    hf_args_int(&a, most_ms);
    return hf_command_send(locks->confirmer, &a, most_ms + MARGIN_MS, on_confirmed,
                           locks);
}

static void begin_round(hf_lock_client *locks, uint32_t replicas)
{
    size_t n = 0;
    for (hf_lock *lock = locks->active, *next; lock != NULL; lock = next) {
        next = lock->next;
        if (lock->step != STEP_CONFIRM || lock->wait_replicas != replicas)
            continue;
        hf_err err = write_again(lock);
        if (err == HF_OK) {
            lock->in_flight++;
            lock->in_round = true;
            n++;
        } else if (err != HF_CONN) {
            hf_acquire_fail(lock, err, hf_err_text(err));
        }
    }
    locks->confirming = n > 0 && send_wait(locks, replicas) == HF_OK;
    if (!locks->confirming)
        for (hf_lock *lock = locks->active; lock != NULL; lock = lock->next)
            lock->in_round = false; /* without memory, or its connection: once more */
}

/* The one that has waited longest; NULL: none does. */
static const hf_lock *find_first(const hf_lock_client *locks)
{
    const hf_lock *first = NULL;
    for (const hf_lock *lock = locks->active; lock != NULL; lock = lock->next)
        if (lock->step == STEP_CONFIRM && (first == NULL || lock->due_ns < first->due_ns))
            first = lock;
    return first;
}

static void on_client(hf_client *client, hf_err err, const char *detail, void *arg)
{
    (void)client;
    (void)detail;
    if (err == HF_OK)
        hf_confirm_pump(arg);
    hf_lock_client_end_turn(arg);
}

void hf_confirm_pump(hf_lock_client *locks)
{
    const hf_lock *first = find_first(locks);
    if (first == NULL || locks->confirming || locks->closing)
        return;
    if (locks->confirmer == NULL) {
        const hf_client_opts opts = {.loop = locks->tasks.run.uv,
                                     .redis = locks->redis,
                                     .blocks = true,
                                     .on_event = on_client,
                                     .arg = locks};
        if (hf_client_open(&locks->confirmer, &opts, NULL) != HF_OK)
            locks->confirmer = NULL; /* the limit of each tells */
    } else if (hf_client_ready(locks->confirmer)) {
        begin_round(locks, first->wait_replicas);
    }
}

/* ---- one lock ---- */

void hf_confirm_begin(hf_lock *lock)
{
    lock->step = STEP_CONFIRM;
    lock->in_round = false;
    lock->due_ns = hf_boot_ns() + lock->locks->redis->connect_timeout_ms * HF_MS_NS;
    hf_confirm_pump(lock->locks);
}

void hf_confirm_late(hf_lock *lock)
{
    const hf_client *client = lock->locks->confirmer;
    hf_err err = client == NULL ? HF_SYSTEM : hf_client_status(client);
    const char *why = client == NULL ? hf_err_text(HF_SYSTEM) : hf_client_detail(client);
    hf_acquire_fail(lock, err == HF_OK ? HF_TIMEOUT : err, why);
}
