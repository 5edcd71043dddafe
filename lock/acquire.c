/* acquire.c - a lock from the call that asks for it to HELD, or to its end.
 *
 *   ACQUIRE --OK-----------> CONFIRM --> HELD --(release, loss)--> RELEASE --> freed
 *     |  '--WAITING--> WAIT --granted--'                              ^
 *     |                 '---(time over, cancelled, place lost)--------'
 *     '-- PAUSE: before it is sent again
 *
 *   ACQUIRE   the request will be sent, or was sent
 *   PAUSE     a simple lock that was taken, a fault, a slot that moves, or an own lease
 *             that seems over
 *   WAIT      it stands in the line of a fair lock
 *   CONFIRM   granted; replicas are asked
 *   HELD      hold.c looks after it
 *   RELEASE   release.c gives it back
 *
 * A waiting lock learns of its grant by a message in the client's inbox, where a
 * connection blocks for all tags of a Redis, or of a slot (redis/listener.h), or by its
 * next renewal, which always tells the true state. After that connection was lost
 * everything is renewed at once, because a message may have been lost with it. */
#include "lock/acquire.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/backoff.h"
#include "base/base.h"
#include "base/clock.h"
#include "base/detail.h"
#include "lock/callback.h"
#include "lock/client.h"
#include "lock/hold.h"
#include "lock/lock.h"
#include "lock/nodes.h"
#include "lock/notices.h"
#include "lock/ops.h"
#include "lock/release.h"
#include "lock/tasks.h"
#include "lock/watchdog/lease.h"
#include "lock/watchdog/watchdog.h"
#include "redis/err.h"

enum {
    SPIN_FIRST_MS = 1,
    SPIN_LAST_MS = 128,
    FAULT_FIRST_MS = 10,
    FAULT_LAST_MS = 1000,
    PROOF_ASK_MS = 500
};

/* ---- its end ---- */

static void tell(hf_lock *lock, hf_err err, const char *detail)
{
    if (lock->acquire.notified)
        return;
    lock->acquire.notified = true;
    hf_tasks_handle_pay(&lock->handle);
    hf_callback callback;
    hf_callback_begin(&callback, lock->locks);
    lock->acquire.cb(lock, hf_err_told(err), detail, lock->acquire.arg);
    hf_callback_end(&callback);
}

bool hf_acquire_was_at_fault(const hf_lock *lock)
{
    return lock->acquire.last_err != HF_OK;
}

void hf_acquire_fail(hf_lock *lock, hf_err err, const char *detail)
{
    hf_lock_confirm_end(lock);
    hf_hold_drop(lock);
    atomic_store(&lock->acquire.waits, false);
    atomic_store(&lock->state, HF_LOCK_GONE);
    tell(lock, err, detail);
    lock->release.leaves_reading = lock->reading.text[0] != '\0';
    if (hf_lock_left_behind(lock) || lock->release.leaves_reading)
        hf_release_begin(lock);
    else
        hf_lock_over(lock);
}

/* ---- again ---- */

/* Until when faults are tried again. */
static uint64_t limit_ns(const hf_lock *lock)
{
    return lock->acquire.reached_ns;
}

/* Redis was reached: an outage is waited out from now on. */
static void was_reached(hf_lock *lock)
{
    if (lock->acquire.until_ns > lock->acquire.reached_ns)
        lock->acquire.reached_ns = lock->acquire.until_ns;
}

static void pause_until(hf_lock *lock, const hf_backoff *backoff, uint64_t limit)
{
    int64_t ms = hf_backoff_ms(backoff, ++lock->acquire.tries, &lock->locks->rng);
    uint64_t due_ns = hf_boot_ns() + (uint64_t)ms * HF_MS_NS;
    lock->step = STEP_PAUSE;
    lock->due_ns = due_ns < limit ? due_ns : limit;
}

static void spin(hf_lock *lock)
{
    static const hf_backoff backoff = {HF_SHAPE_EXPONENTIAL, SPIN_FIRST_MS, SPIN_LAST_MS,
                                       0.5};
    pause_until(lock, &backoff, lock->acquire.until_ns);
}

/* Its own lease seems to be over: it may be of a process that is dead. */
static void await_proof(hf_lock *lock, uint32_t after_ms)
{
    bool is_soon = after_ms > 0 && after_ms < PROOF_ASK_MS;
    uint64_t due_ns = hf_boot_ns() + (is_soon ? after_ms : PROOF_ASK_MS) * HF_MS_NS;
    lock->step = STEP_PAUSE;
    lock->due_ns = due_ns < lock->acquire.until_ns ? due_ns : lock->acquire.until_ns;
}

static void refuse_taken(hf_lock *lock, uint64_t silent_ms)
{
    char detail[HF_DETAIL_SIZE] = "";
    if (silent_ms > 0)
        (void)snprintf(detail, sizeof detail,
                       "its holder has not renewed for %" PRIu64 ".%" PRIu64 " s",
                       silent_ms / 1000, silent_ms / 100 % 10);
    hf_acquire_fail(lock, HF_TAKEN, detail);
}

static void was_taken(hf_lock *lock, const hf_acquired *e)
{
    if (e->clock_ms > 0)
        hf_lock_note_reading(lock, e->number, e->clock_ms, e->now_ms);
    atomic_store(&lock->state, HF_LOCK_WAITING);
    if (hf_boot_ns() >= lock->acquire.until_ns)
        refuse_taken(lock, e->silent_ms);
    else if (lock->simple)
        spin(lock);
    else
        await_proof(lock, e->after_ms);
}

/* Nothing was done, and that may change; or the result is unknown. */
static bool may_pass(hf_err err)
{
    return err == HF_UNSURE ||
           hf_err_is(err, HF_ERR_AT_ONCE | HF_ERR_PASSES | HF_ERR_NO_WRITES);
}

static void back_off(hf_lock *lock)
{
    uint64_t limit = limit_ns(lock);
    lock->step = STEP_PAUSE;
    lock->due_ns = lock->backoff.until_ns < limit ? lock->backoff.until_ns : limit;
}

/* `elsewhere`: another node may have it. */
static void again(hf_lock *lock, hf_err err, bool elsewhere, const char *detail)
{
    static const hf_backoff backoff = {HF_SHAPE_EXPONENTIAL, FAULT_FIRST_MS,
                                       FAULT_LAST_MS, 0.2};
    lock->acquire.last_err = err;
    (void)snprintf(lock->acquire.detail, sizeof lock->acquire.detail, "%s", detail);
    if (hf_boot_ns() >= limit_ns(lock) || !may_pass(err))
        hf_acquire_fail(lock, err, detail);
    else if (err == HF_UNSURE || err == HF_CONN)
        lock->step = STEP_ACQUIRE; /* with the next connection */
    else if (hf_err_is(err, HF_ERR_AT_ONCE) ||
             (elsewhere && hf_boot_ns() >= lock->backoff.until_ns))
        hf_acquire_send(lock);
    else if (elsewhere)
        back_off(lock);
    else
        pause_until(lock, &backoff, limit_ns(lock));
}

/* ---- held ---- */

static void hold(hf_lock *lock)
{
    hf_lease *lease = atomic_load(&lock->held.lease);
    bool lost = hf_lease_lost(lease);
    if (!lost && lock->fixed)
        hf_watchdog_fix(lock->locks->watchdog, lease);
    if (!lost && lock->max_hold_ms != 0) {
        uint64_t max_ns = hf_boot_ns() + lock->max_hold_ms * HF_MS_NS;
        atomic_store(&lock->held.max_ns, max_ns);
        hf_watchdog_limit(lock->locks->watchdog, lease, max_ns);
    }
    if (!lost)
        hf_notices_begin(lock);
    /* From now on the watchdog tells the user of a loss, and until now the loop: one of
     * the two takes it. The user may give it back at once, so the lease is not ours. */
    if (lost || !atomic_exchange(&lock->acquire.waits, false)) {
        hf_acquire_lost(lock);
        return;
    }
    lock->step = STEP_HELD;
    int entering = HF_LOCK_ENTERING, waiting = HF_LOCK_WAITING;
    if (!atomic_compare_exchange_strong(&lock->state, &entering, HF_LOCK_HELD))
        (void)atomic_compare_exchange_strong(&lock->state, &waiting, HF_LOCK_HELD);
    hf_lock_move(lock, &lock->locks->held);
    tell(lock, HF_OK, "");
}

/* ---- replicas have it (wait_replicas) ----
 *
 * The lock is renewed before: a grant may have been heard of by a message, and the answer
 * to the renewal says that this life of the server has it.
 *
 *   STEP_CONFIRM: to be renewed --answered--> replicas are asked --> held, or given back
 *                  '---------------another life-------' */

enum { RETRY_MS = 100 };

static void on_confirmed(void *arg, hf_err err, const char *detail)
{
    hf_lock *lock = arg;
    hf_lock_client *locks = lock->locks;
    lock->acquire.asks_replicas = false;
    if (err == HF_OK)
        hold(lock);
    else if (err == HF_UNSURE)
        hf_acquire_confirm_send(lock);
    else
        hf_acquire_fail(lock, err == HF_UNCONFIRMED ? HF_MISCONF : err, detail);
    hf_tasks_turned(&locks->tasks);
}

static void ask_replicas(hf_lock *lock)
{
    lock->acquire.confirm = (hf_confirm){
        .wanted = lock->wait_replicas,
        .until_ns = hf_boot_ns() + lock->locks->request_timeout_ms * HF_MS_NS,
        .cb = on_confirmed,
        .arg = lock};
    hf_err err = hf_node_confirm(&lock->asked->base, &lock->acquire.confirm);
    lock->acquire.asks_replicas = err == HF_OK;
    if (err != HF_OK)
        hf_acquire_fail(lock, err, hf_err_text(err));
}

static void confirm_again(hf_lock *lock, hf_err err, bool elsewhere, const char *detail)
{
    lock->acquire.last_err = err;
    (void)snprintf(lock->acquire.detail, sizeof lock->acquire.detail, "%s", detail);
    if (!elsewhere && hf_err_is(err, HF_ERR_PASSES | HF_ERR_NO_WRITES))
        lock->backoff.until_ns = hf_boot_ns() + RETRY_MS * HF_MS_NS;
    hf_acquire_confirm_send(lock);
}

static void on_renewed(const hf_answer *answer, void *arg)
{
    hf_lock *lock = arg;
    hf_lock_client *locks = lock->locks;
    hf_lock_renewed renewed;
    hf_lease_note what;
    hf_err err = hf_op_renewed_read(answer, &renewed);
    bool elsewhere = hf_node_answered(&lock->asked->base, &lock->backoff, answer);
    lock->in_flight--;
    if (renewed.now_ms > 0)
        hf_lock_node_clock(lock->asked, renewed.now_ms, answer->sent_ns);
    if (err == HF_OK)
        err = hf_op_renewed_next(&renewed, 0, &what);
    if (lock->step == STEP_RELEASE)
        hf_release_answered(lock);
    else if ((err == HF_OK || err == HF_CANCEL) && hf_lock_route(lock) != lock->asked)
        hf_acquire_confirm_send(lock); /* the new node's replicas have to have it */
    else if (err == HF_OK || err == HF_CANCEL)
        ask_replicas(lock);
    else if (err == HF_LOST || err == HF_IN_LINE)
        hf_acquire_lost(lock);
    else if (may_pass(err))
        confirm_again(lock, err, elsewhere, answer->detail);
    else
        hf_acquire_fail(lock, err,
                        err == answer->err ? answer->detail : hf_err_text(err));
    hf_tasks_turned(&locks->tasks);
}

void hf_acquire_confirm_send(hf_lock *lock)
{
    hf_lock_node *node = hf_lock_route(lock);
    const hf_lock_renewal item = {.prefix = {lock->prefix, lock->prefix_len},
                                  .owner = lock->owner,
                                  .hold = lock->hold,
                                  .name = lock->names[0],
                                  .lease_ms = atomic_load(&lock->lease_ms),
                                  .simple = lock->simple,
                                  .shown = ""};
    bool backs_off = hf_boot_ns() < lock->backoff.until_ns;
    lock->due_ns =
        backs_off ? lock->backoff.until_ns : UINT64_MAX; /* with the next connection */
    if (backs_off || lock->acquire.asks_replicas || lock->in_flight > 0 ||
        !hf_lock_node_ready(node))
        return;
    lock->asked = node;
    hf_asker asker = hf_asker_now(lock->locks->machine);
    hf_err err = hf_op_lock_renew(node->base.client, &item, 1, &asker,
                                  hf_lock_node_not_after(node), 0, on_renewed, lock);
    if (err == HF_OK)
        lock->in_flight++;
    else if (err != HF_CONN)
        hf_acquire_fail(lock, err, hf_err_text(err));
}

static void confirm_begin(hf_lock *lock)
{
    lock->step = STEP_CONFIRM;
    lock->acquire.confirm_until_ns =
        hf_boot_ns() + lock->locks->connect_timeout_ms * HF_MS_NS;
    hf_acquire_confirm_send(lock);
}

static uint64_t confirm_due_ns(const hf_lock *lock)
{
    if (lock->acquire.asks_replicas || lock->in_flight > 0)
        return UINT64_MAX;
    return lock->due_ns < lock->acquire.confirm_until_ns ? lock->due_ns
                                                         : lock->acquire.confirm_until_ns;
}

static void confirm_time(hf_lock *lock, uint64_t now_ns)
{
    if (now_ns >= lock->acquire.confirm_until_ns)
        hf_acquire_not_reached(lock);
    else
        hf_acquire_confirm_send(lock);
}

static void become_held(hf_lock *lock, uint64_t fence)
{
    atomic_store(&lock->fence, fence);
    if (lock->wait_replicas == 0)
        hold(lock);
    else
        confirm_begin(lock);
}

/* False: it could not be looked after, and has ended. */
static bool keep_lease(hf_lock *lock)
{
    atomic_store(&lock->acquire.waits, true);
    hf_lease *lease =
        hf_watchdog_add(lock->locks->watchdog, hf_hold_group(lock),
                        lock->acquire.args.lease_ms, lock->acquire.sent_ns, false, lock);
    atomic_store(&lock->held.lease, lease);
    if (lease == NULL)
        hf_acquire_fail(lock, HF_NOMEM, hf_err_text(HF_NOMEM));
    return lease != NULL;
}

static void granted(hf_lock *lock, uint64_t fence)
{
    if (lock->step == STEP_WAIT)
        become_held(lock, fence);
}

void hf_acquire_lost(hf_lock *lock)
{
    hf_lock_confirm_end(lock);
    hf_hold_drop(lock);
    atomic_store(&lock->acquire.waits, false);
    atomic_store(&lock->acquire.lost, false);
    atomic_store(&lock->acquire.granted, false);
    atomic_store(&lock->acquire.asked_early, false);
    atomic_store(&lock->fence, 0);
    if (hf_boot_ns() >= limit_ns(lock)) {
        hf_acquire_fail(lock, HF_TAKEN, "its place in the line was lost");
        return;
    }
    lock->acquire.tries = 0;
    lock->acquire.reached_ns = lock->acquire.until_ns;
    atomic_store(&lock->state, HF_LOCK_ENTERING);
    hf_acquire_send(lock);
}

/* ---- grants: the tags of all locks that wait ---- */

static hf_listener_tag tag_of(const hf_lock *lock)
{
    const hf_lock_node *node = atomic_load(&lock->node);
    return (hf_listener_tag){.prefix = lock->prefix,
                             .prefix_len = lock->prefix_len,
                             .slot = lock->slot,
                             .redis = node->base.redis};
}

/* Without room for it, it asks. */
static void listen_for(hf_listener *listener, hf_lock *lock)
{
    const hf_listener_tag tag = tag_of(lock);
    bool heard = hf_listener_add(listener, &tag);
    atomic_store(&lock->acquire.unheard, !heard);
    if (!heard)
        hf_watchdog_hurry(lock->locks->watchdog, atomic_load(&lock->held.lease),
                          hf_boot_ns() + HF_UNHEARD_MS * HF_MS_NS);
}

/* Redis serves the first tag that has a message, so the lock that has waited longest
 * comes first: otherwise newer locks could keep its message waiting. */
static void choose(hf_listener *listener)
{
    const hf_lock_client *locks = listener->arg;
    hf_lock *lock = locks->active;
    while (lock != NULL && lock->next != NULL)
        lock = lock->next;
    for (; lock != NULL; lock = lock->prev)
        if (lock->step == STEP_WAIT)
            listen_for(listener, lock);
}

static bool is_deaf(hf_listener *listener)
{
    const hf_lock_client *locks = listener->arg;
    for (const hf_lock *lock = locks->active; lock != NULL; lock = lock->next) {
        const hf_listener_tag tag = tag_of(lock);
        if (lock->step == STEP_WAIT && !hf_listener_hears(listener, &tag) &&
            !(atomic_load(&lock->acquire.unheard) &&
              !hf_listener_has_room(listener, &tag)))
            return true;
    }
    return false;
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
static void heard_grant(hf_lock *lock, uint64_t fence)
{
    if (lock->step == STEP_ACQUIRE) /* it has overtaken the answer that says: WAITING */
        lock->acquire.heard_fence = fence;
    if (lock->step != STEP_WAIT || fence <= lock->acquire.number)
        return;
    if (lock->acquire.args.reentrant && lock->n_names > 1)
        hf_watchdog_hurry(lock->locks->watchdog, atomic_load(&lock->held.lease),
                          hf_boot_ns());
    else
        granted(lock, fence);
}

/* "granted FENCE HOLD ..." */
static void on_message(hf_listener *listener, const char *key, const char *text)
{
    (void)key;
    hf_lock_client *locks = listener->arg;
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
        if (lock != NULL && granted)
            heard_grant(lock, fence);
        end = (char *)hold + len;
    }
}

static void on_doubt(hf_listener *listener)
{
    const hf_lock_client *locks = listener->arg;
    hf_watchdog_verify(locks->watchdog);
}

static void on_turn(hf_listener *listener)
{
    hf_lock_client *locks = listener->arg;
    hf_acquire_grants_listen(locks);
    hf_tasks_turned(&locks->tasks);
}

/* ---- listening ---- */

void hf_acquire_grants_init(hf_lock_client *locks)
{
    locks->listener = (hf_listener){.nodes = &locks->nodes,
                                    .loop = locks->tasks.run.uv,
                                    .wait_ms = HF_LISTEN_MS,
                                    .waits_max = HF_LISTEN_WAITS,
                                    .choose = choose,
                                    .is_deaf = is_deaf,
                                    .on_message = on_message,
                                    .on_doubt = on_doubt,
                                    .on_turn = on_turn,
                                    .arg = locks};
    (void)snprintf(locks->listener.suffix, sizeof locks->listener.suffix, "in:%s",
                   locks->id);
}

void hf_acquire_grants_listen(hf_lock_client *locks)
{
    if (!locks->closing)
        hf_listener_listen(&locks->listener);
}

uint64_t hf_acquire_grants_due_ns(hf_lock_client *locks)
{
    return locks->closing ? UINT64_MAX : hf_listener_due_ns(&locks->listener);
}

void hf_acquire_grants_notes(hf_lock_client *locks)
{
    for (hf_lock *lock = locks->active, *next; lock != NULL; lock = next) {
        next = lock->next;
        if (lock->step != STEP_WAIT)
            continue;
        if (atomic_exchange(&lock->acquire.lost, false))
            hf_acquire_lost(lock);
        else if (atomic_exchange(&lock->acquire.granted, false))
            granted(lock, atomic_load(&lock->fence));
    }
}

/* ---- the request ---- */

static void stand_in_line(hf_lock *lock, const hf_acquired *e)
{
    hf_lock_client *locks = lock->locks;
    lock->step = STEP_WAIT;
    lock->acquire.tries = 0;
    lock->acquire.reached_ns = lock->acquire.until_ns;
    lock->acquire.number = e->number;
    atomic_store(&lock->acquire.unheard, false);
    atomic_store(&lock->state, HF_LOCK_WAITING);
    hf_lock_note_reading(lock, e->number, e->clock_ms, e->now_ms);
    if (!keep_lease(lock))
        return;
    if (e->after_ms > 0)
        hf_watchdog_hurry(locks->watchdog, atomic_load(&lock->held.lease),
                          hf_boot_ns() + e->after_ms * HF_MS_NS);
    hf_acquire_grants_listen(locks);
    heard_grant(lock, lock->acquire.heard_fence);
}

/* Whether the request that was answered with this did something, or may have. */
static bool may_have_done(hf_err err)
{
    return err == HF_OK || err == HF_IN_LINE ||
           (err <= HF_INVALID && !hf_err_is(err, HF_ERR_NOT_DONE));
}

static void on_acquire_answered(const hf_answer *answer, void *arg)
{
    hf_lock *lock = arg;
    hf_lock_client *locks = lock->locks;
    hf_acquired e;
    hf_err err = hf_op_acquired_read(answer, &e);
    bool elsewhere = hf_node_answered(&lock->asked->base, &lock->backoff, answer);
    lock->in_flight--;
    if (e.now_ms > 0)
        hf_lock_node_clock(lock->asked, e.now_ms, answer->sent_ns);
    if (e.now_ms > 0 || hf_err_is(err, HF_ERR_OF_CLUSTER))
        was_reached(lock);
    lock->may_be_there = lock->may_be_there || may_have_done(err);
    if (err == HF_UNSURE)
        lock->doubt_ms = lock->acquire.args.not_after;
    if (lock->step != STEP_ACQUIRE) { /* it was given up meanwhile */
        hf_release_answered(lock);
    } else if (err == HF_OK) {
        if (keep_lease(lock))
            become_held(lock, e.fence);
    } else if (err == HF_IN_LINE) {
        stand_in_line(lock, &e);
    } else if (err == HF_TAKEN) {
        was_taken(lock, &e);
    } else if (err == HF_DEADLOCK) {
        hf_acquire_fail(lock, err, "");
    } else if (err == HF_LIMIT) {
        char detail[HF_DETAIL_SIZE];
        (void)snprintf(detail, sizeof detail, "the limit is %u", e.limit);
        hf_acquire_fail(lock, err, detail);
    } else {
        again(lock, err, elsewhere, answer->detail);
    }
    hf_tasks_turned(&locks->tasks);
}

void hf_acquire_send(hf_lock *lock)
{
    hf_lock_node *node = hf_lock_route(lock);
    char detail[HF_DETAIL_SIZE];
    lock->step = STEP_ACQUIRE;
    if (node->base.client == NULL && hf_node_status(&node->base, detail) == HF_UNSERVED)
        was_reached(lock);
    if (lock->in_flight > 0 || !hf_lock_node_ready(node))
        return;
    if (!hf_lock_node_fit(node, detail)) {
        hf_acquire_fail(lock, HF_POLICY, detail);
        return;
    }
    const hf_lock_of of = hf_lock_of_lock(lock);
    lock->acquire.args.not_after = hf_lock_node_not_after(node);
    uint64_t sent_ns = hf_boot_ns();
    lock->acquire.args.asker = hf_asker_now(lock->locks->machine);
    lock->acquire.args.shown =
        hf_reading_shown(&lock->reading, atomic_load(&node->epoch));
    hf_err err = hf_op_lock_acquire(node->base.client, &of, &lock->acquire.args, 0,
                                    on_acquire_answered, lock);
    if (err == HF_OK) {
        lock->in_flight++;
        lock->asked = node;
        lock->acquire.sent_ns = sent_ns;
    } else if (err != HF_CONN) {
        hf_acquire_fail(lock, err, hf_err_text(err));
    }
}

/* ---- time ---- */

uint64_t hf_acquire_due_ns(const hf_lock *lock)
{
    if (lock->step == STEP_PAUSE)
        return lock->due_ns;
    if (lock->step == STEP_WAIT)
        return lock->acquire.until_ns;
    if (lock->step == STEP_CONFIRM)
        return confirm_due_ns(lock);
    return lock->step == STEP_ACQUIRE && lock->in_flight == 0 ? limit_ns(lock)
                                                              : UINT64_MAX;
}

void hf_acquire_not_reached(hf_lock *lock)
{
    char why[HF_DETAIL_SIZE];
    hf_err err = hf_node_status(&atomic_load(&lock->node)->base, why);
    if (lock->acquire.last_err != HF_OK && err == HF_OK)
        hf_acquire_fail(lock, lock->acquire.last_err, lock->acquire.detail);
    else
        hf_acquire_fail(lock, err == HF_OK ? HF_CONN : err, why);
}

void hf_acquire_time(hf_lock *lock, uint64_t now_ns)
{
    if (now_ns < hf_acquire_due_ns(lock))
        return;
    if (lock->step == STEP_WAIT)
        hf_acquire_fail(lock, HF_TAKEN, "");
    else if (lock->step == STEP_ACQUIRE)
        hf_acquire_not_reached(lock);
    else if (lock->step == STEP_CONFIRM)
        confirm_time(lock, now_ns);
    else if (lock->simple && now_ns >= lock->acquire.until_ns &&
             lock->acquire.last_err == HF_OK)
        hf_acquire_fail(lock, HF_TAKEN, "");
    else
        hf_acquire_send(lock);
}

/* ---- the calls ---- */

static void run_acquire(hf_task *task)
{
    hf_lock *lock = HF_CONTAINER(task, hf_lock, handle.task);
    hf_lock_client *locks = lock->locks;
    hf_lock_move(lock, &locks->active);
    if (locks->closing)
        hf_acquire_fail(lock, HF_CLOSED, "the client is being closed");
    else
        hf_acquire_send(lock);
}

static void run_cancel(hf_task *task)
{
    hf_lock *lock = HF_CONTAINER(task, hf_lock, handle.cancel_task);
    atomic_store(&lock->handle.cancel_queued, false);
    if (lock->over)
        hf_lock_over(lock);
    else if (!lock->acquire.notified)
        hf_acquire_fail(lock, HF_CANCEL, "cancelled");
}

static hf_err make(hf_lock_client *locks, const hf_lock_opts *opts,
                   hf_lock_acquired_cb cb, void *arg, hf_lock **out, char *detail)
{
    hf_err err = hf_lock_make(locks, opts, out, detail);
    if (err != HF_OK)
        return err;
    (*out)->acquire.cb = cb;
    (*out)->acquire.arg = arg;
    return HF_OK;
}

/* It was not submitted. */
static hf_err refuse(hf_lock *lock, hf_err err, char *detail)
{
    hf_lock_free(lock);
    return hf_say_err(detail, err);
}

hf_err hf_lock_acquire(hf_lock_client *locks, const hf_lock_opts *opts,
                       hf_lock_acquired_cb cb, void *arg, hf_lock **out,
                       char detail[HF_DETAIL_SIZE])
{
    hf_lock *lock;
    if (hf_tasks_forked(&locks->tasks))
        return hf_say_err(detail, HF_FORKED);
    hf_err err = make(locks, opts, cb, arg, &lock, detail);
    if (err != HF_OK)
        return err;
    if (out != NULL)
        *out = lock;
    err = hf_tasks_handle_submit(&lock->handle, run_acquire, true);
    return err == HF_OK ? HF_OK : refuse(lock, err, detail);
}

void hf_lock_cancel(hf_lock *lock)
{
    hf_tasks_handle_cancel(&lock->handle, run_cancel);
}

/* ---- waiting for it ---- */

static void on_acquired(hf_lock *lock, hf_err err, const char *detail, void *awaited)
{
    hf_tasks_handle_answer(&lock->handle, awaited, err, detail);
}

hf_err hf_lock_acquire_wait(hf_lock_client *locks, const hf_lock_opts *opts,
                            hf_lock **out, char detail[HF_DETAIL_SIZE])
{
    hf_awaited a = {.err = HF_OK};
    hf_lock *lock;
    hf_err err = hf_tasks_may_wait(&locks->tasks, detail);
    if (err == HF_OK)
        err = make(locks, opts, on_acquired, &a, &lock, detail);
    if (err != HF_OK)
        return err;
    err = hf_tasks_handle_await(&lock->handle, run_acquire, &a.waiter);
    if (err != HF_OK)
        return refuse(lock, err, detail);
    if (a.err != HF_OK)
        return hf_say(detail, a.err, "%s", a.detail);
    *out = lock;
    return HF_OK;
}
