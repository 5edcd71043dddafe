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

hf_err hf_lock_replicas_open(hf_replicas **out, uv_loop_t *loop,
                             const hf_lock_client *locks)
{
    char mark[HF_REPLICAS_MARK_SIZE];
    (void)snprintf(mark, sizeof mark, "%s:lock:{/}:replicated", locks->ns);
    return hf_replicas_open(out, loop, locks->redis, mark);
}

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
    hf_lock_client *locks = lock->locks;
    if (locks->replicas == NULL &&
        hf_lock_replicas_open(&locks->replicas, locks->tasks.run.uv, locks) != HF_OK) {
        hf_acquire_fail(lock, HF_NOMEM, hf_err_text(HF_NOMEM));
        return;
    }
    lock->asks_replicas = true;
    lock->confirm = (hf_confirm){.life = hf_client_life(locks->client),
                                 .wanted = lock->wait_replicas,
                                 .until_ns = hf_boot_ns() +
                                             locks->redis->request_timeout_ms * HF_MS_NS,
                                 .cb = on_confirmed,
                                 .arg = lock};
    hf_replicas_ask(locks->replicas, &lock->confirm);
}

/* Nothing was done, or the result is unknown. */
static bool may_pass(hf_err err)
{
    return err == HF_NOSCRIPT || err == HF_DEADLINE || err == HF_CONN || err == HF_UNSURE;
}

static void on_renewed(const hf_answer *answer, void *arg)
{
    hf_lock *lock = arg;
    hf_lock_client *locks = lock->locks;
    hf_lock_renewed renewed;
    hf_lease_note what;
    hf_err err = hf_lock_renewed_read(answer, &renewed);
    lock->in_flight--;
    if (renewed.now_ms > 0)
        hf_lock_client_clock(locks, renewed.now_ms, answer->sent_ns);
    if (err == HF_OK)
        err = hf_lock_renewed_next(&renewed, 0, &what);
    if (lock->step == STEP_RELEASE)
        hf_release_answered(lock);
    else if (err == HF_OK || err == HF_CANCEL)
        ask_replicas(lock);
    else if (err == HF_LOST || err == HF_IN_LINE)
        hf_acquire_lost(lock);
    else if (may_pass(err))
        hf_confirm_send(lock);
    else
        hf_acquire_fail(lock, err,
                        err == answer->err ? answer->detail : hf_err_text(err));
    hf_lock_client_end_turn(locks);
}

void hf_confirm_send(hf_lock *lock)
{
    hf_lock_client *locks = lock->locks;
    const hf_lock_renewal item = {.prefix = {lock->prefix, lock->prefix_len},
                                  .owner = lock->owner,
                                  .hold = lock->hold,
                                  .name = lock->names[0],
                                  .lease_ms = atomic_load(&lock->lease_ms),
                                  .simple = lock->simple};
    if (lock->asks_replicas || lock->in_flight > 0 || !hf_lock_client_ready(locks))
        return; /* else with the next connection */
    hf_err err = hf_op_lock_renew(locks->client, &item, 1,
                                  hf_lock_client_not_after(locks), 0, on_renewed, lock);
    if (err == HF_OK)
        lock->in_flight++;
    else if (err != HF_CONN)
        hf_acquire_fail(lock, err, hf_err_text(err));
}

void hf_confirm_begin(hf_lock *lock)
{
    lock->step = STEP_CONFIRM;
    lock->due_ns = hf_boot_ns() + lock->locks->redis->connect_timeout_ms * HF_MS_NS;
    hf_confirm_send(lock);
}

void hf_confirm_end(hf_lock *lock)
{
    if (lock->asks_replicas)
        hf_replicas_withdraw(lock->locks->replicas, &lock->confirm);
    lock->asks_replicas = false;
}
