/* confirm.c - replicas have a lock that was granted (wait_replicas; redis/replicas.h).
 *
 * The lock is renewed before: a grant may have been heard of by a message, and the answer
 * to the renewal says that this life of the server has it.
 *
 *   STEP_CONFIRM: to be renewed --answered--> replicas are asked --> held, or given back
 *                  '---------------another life-------' */
#include <stdio.h>

#include "base/base.h"
#include "base/clock.h"
#include "lock/locks.h"

enum { RETRY_MS = 100 };

static void on_confirmed(void *arg, hf_err err, const char *detail)
{
    hf_lock *lock = arg;
    hf_lock_client *locks = lock->locks;
    lock->asks_replicas = false;
    if (err == HF_OK)
        hf_acquire_confirmed(lock);
    else if (err == HF_UNSURE)
        hf_confirm_send(lock);
    else
        hf_acquire_fail(lock, err == HF_UNCONFIRMED ? HF_MISCONF : err, detail);
    hf_lock_client_end_turn(locks);
}

static void ask_replicas(hf_lock *lock)
{
    lock->confirm =
        (hf_confirm){.wanted = lock->wait_replicas, .cb = on_confirmed, .arg = lock};
    hf_err err = hf_lock_node_confirm(lock->asked, &lock->confirm);
    lock->asks_replicas = err == HF_OK;
    if (err != HF_OK)
        hf_acquire_fail(lock, err, hf_err_text(err));
}

/* Nothing was done, or the result is unknown. */
static bool may_pass(hf_err err)
{
    return err == HF_NOSCRIPT || err == HF_DEADLINE || err == HF_CONN ||
           err == HF_UNSURE || err == HF_MOVED || err == HF_UNSERVED;
}

static void again(hf_lock *lock, hf_err err, bool moved, const char *detail)
{
    lock->last_err = err;
    (void)snprintf(lock->detail, sizeof lock->detail, "%s", detail);
    if (!moved && (err == HF_MOVED || err == HF_UNSERVED))
        lock->rest_ns = hf_boot_ns() + RETRY_MS * HF_MS_NS;
    hf_confirm_send(lock);
}

static void on_renewed(const hf_answer *answer, void *arg)
{
    hf_lock *lock = arg;
    hf_lock_client *locks = lock->locks;
    hf_lock_renewed renewed;
    hf_lease_note what;
    hf_err err = hf_lock_renewed_read(answer, &renewed);
    bool moved = hf_lock_node_answered(lock->asked, answer, &lock->moved);
    lock->in_flight--;
    if (renewed.now_ms > 0)
        hf_lock_node_clock(lock->asked, renewed.now_ms, answer->sent_ns);
    if (err == HF_OK)
        err = hf_lock_renewed_next(&renewed, 0, &what);
    if (lock->step == STEP_RELEASE)
        hf_release_answered(lock);
    else if ((err == HF_OK || err == HF_CANCEL) && hf_lock_route(lock) != lock->asked)
        hf_confirm_send(lock); /* the new node's replicas have to have it */
    else if (err == HF_OK || err == HF_CANCEL)
        ask_replicas(lock);
    else if (err == HF_LOST || err == HF_IN_LINE)
        hf_acquire_lost(lock);
    else if (may_pass(err))
        again(lock, err, moved, answer->detail);
    else
        hf_acquire_fail(lock, err,
                        err == answer->err ? answer->detail : hf_err_text(err));
    hf_lock_client_end_turn(locks);
}

void hf_confirm_send(hf_lock *lock)
{
    hf_lock_node *node = hf_lock_route(lock);
    const hf_lock_renewal item = {.prefix = {lock->prefix, lock->prefix_len},
                                  .owner = lock->owner,
                                  .hold = lock->hold,
                                  .name = lock->names[0],
                                  .lease_ms = atomic_load(&lock->lease_ms),
                                  .simple = lock->simple,
                                  .shown = ""};
    bool rests = hf_boot_ns() < lock->rest_ns;
    lock->due_ns = rests ? lock->rest_ns : UINT64_MAX; /* with the next connection */
    if (rests || lock->asks_replicas || lock->in_flight > 0 || !hf_lock_node_ready(node))
        return;
    lock->asked = node;
    hf_asker asker = hf_asker_now(lock->locks->machine);
    hf_err err = hf_op_lock_renew(node->client, &item, 1, &asker,
                                  hf_lock_node_not_after(node), 0, on_renewed, lock);
    if (err == HF_OK)
        lock->in_flight++;
    else if (err != HF_CONN)
        hf_acquire_fail(lock, err, hf_err_text(err));
}

void hf_confirm_begin(hf_lock *lock)
{
    lock->step = STEP_CONFIRM;
    lock->confirm_until_ns = hf_boot_ns() + lock->locks->connect_timeout_ms * HF_MS_NS;
    hf_confirm_send(lock);
}

uint64_t hf_confirm_due_ns(const hf_lock *lock)
{
    if (lock->asks_replicas || lock->in_flight > 0)
        return UINT64_MAX;
    return lock->due_ns < lock->confirm_until_ns ? lock->due_ns : lock->confirm_until_ns;
}

void hf_confirm_time(hf_lock *lock, uint64_t now_ns)
{
    if (now_ns >= lock->confirm_until_ns)
        hf_acquire_not_reached(lock);
    else
        hf_confirm_send(lock);
}

void hf_confirm_end(hf_lock *lock)
{
    if (lock->asks_replicas)
        hf_replicas_withdraw(atomic_load(&lock->node)->replicas, &lock->confirm);
    lock->asks_replicas = false;
}
