/* ask.c - one request whose caller waits for its answer. A request that certainly did
 * nothing is sent again until the call's deadline. */
#include "lock/ask.h"

#include <stdio.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/detail.h"
#include "lock/client.h"
#include "lock/lock.h"
#include "lock/nodes.h"
#include "lock/tasks.h"
#include "redis/err.h"
#include "redis/send.h"

enum { RETRY_MS = 100 };

static void unlink_ask(hf_lock_ask *ask)
{
    hf_lock_ask **at = &ask->locks->asks;
    while (*at != ask)
        at = &(*at)->next;
    *at = ask->next;
}

static bool owes(const hf_lock_ask *ask)
{
    return ask->waiter == NULL || ask->calls_back;
}

static bool is_fault(hf_err err)
{
    return err <= HF_INVALID && err > HF_UNSURE;
}

/* Why it did not happen now says nothing about the time before. */
static void end(hf_lock_ask *ask, hf_err err, const char *detail)
{
    if (ask->unsure && is_fault(err))
        err = HF_UNSURE;
    ask->err = hf_err_told(err);
    (void)snprintf(ask->detail, sizeof ask->detail, "%s", detail);
    unlink_ask(ask);
    hf_lock_client *locks = ask->locks;
    hf_lock *lock = ask->lock;
    if (owes(ask))
        hf_tasks_pay(&locks->tasks);
    if (ask->waiter != NULL)
        hf_run_loop_done(&locks->tasks.run, ask->waiter);
    else
        ask->on_end(ask);
    if (lock == NULL)
        return;
    lock->in_flight--;
    if (lock->step == STEP_RELEASE)
        locks->on_asked(lock);
}

void hf_ask_released(const hf_lock *lock)
{
    for (hf_lock_ask *ask = lock->locks->asks, *next; ask != NULL; ask = next) {
        next = ask->next;
        if (ask->lock == lock && !ask->in_flight)
            end(ask, HF_LOST, "it was released");
    }
}

/* ---- replicas ---- */

static void conclude(hf_lock_ask *ask, hf_err err, const char *detail)
{
    if (err == HF_OK && ask->take != NULL)
        err = ask->take(ask);
    end(ask, err, detail);
}

/* Not confirmed, or by replicas of a node that has it no more: the next renewal asks
 * again. */
static void on_confirmed(void *arg, hf_err err, const char *detail)
{
    hf_lock_ask *ask = arg;
    hf_lock_client *locks = ask->locks;
    ask->in_flight = false;
    if (err == HF_OK && hf_lock_route(ask->lock) != ask->node)
        err = HF_UNSURE;
    conclude(ask, err, detail);
    hf_tasks_turned(&locks->tasks);
}

/* False: it has to be confirmed, and is not yet. */
static bool is_confirmed(hf_lock_ask *ask)
{
    if (ask->take == NULL || ask->lock == NULL || ask->lock->wait_replicas == 0)
        return true;
    ask->confirm =
        (hf_confirm){.wanted = ask->lock->wait_replicas,
                     .until_ns = hf_boot_ns() + ask->locks->request_timeout_ms * HF_MS_NS,
                     .cb = on_confirmed,
                     .arg = ask};
    hf_err err = hf_node_confirm(&ask->node->base, &ask->confirm);
    ask->in_flight = err == HF_OK;
    if (err != HF_OK)
        end(ask, err, hf_err_text(err));
    return false;
}

/* ---- sending ---- */

/* If the time ends before, the last refusal says why. */
static void try_again(hf_lock_ask *ask, hf_err err, const char *detail, bool elsewhere)
{
    uint64_t now_ns = hf_boot_ns();
    ask->due_ns = elsewhere            ? ask->backoff.until_ns
                  : err == HF_NOSCRIPT ? now_ns
                                       : now_ns + RETRY_MS * HF_MS_NS;
    if (hf_err_is(err, HF_ERR_AT_ONCE))
        return;
    ask->err = err;
    (void)snprintf(ask->detail, sizeof ask->detail, "%s", detail);
}

static void on_answer(const hf_answer *answer, void *arg)
{
    hf_lock_ask *ask = arg;
    hf_lock_client *locks = ask->locks;
    ask->in_flight = false;
    hf_err err = ask->read(ask, answer);
    bool elsewhere = hf_node_answered(&ask->node->base, &ask->backoff, answer);
    int64_t redis_ms =
        0; /* also told with HF_DEADLINE: it goes again with the new time */
    hf_err status = hf_send_script_status(answer, 2, &redis_ms);
    if (status != HF_PROTO && redis_ms > 0)
        hf_lock_node_clock(ask->node, redis_ms, answer->sent_ns);
    ask->unsure = ask->unsure || (ask->repeats && err == HF_UNSURE);
    bool again = elsewhere || hf_err_is(err, HF_ERR_AT_ONCE | HF_ERR_PASSES) ||
                 (ask->repeats && err == HF_UNSURE);
    if (again && ask->lock != NULL && ask->lock->step == STEP_RELEASE)
        end(ask, HF_LOST, "it was released");
    else if (again && hf_boot_ns() < ask->until_ns && !locks->closing)
        try_again(ask, err, answer->detail, elsewhere);
    else if (err != HF_OK || is_confirmed(ask))
        conclude(ask, err, answer->detail);
    hf_tasks_turned(&locks->tasks);
}

static void send_ask(hf_lock_ask *ask)
{
    char detail[HF_DETAIL_SIZE];
    if (ask->writes_what_must_stay && !hf_lock_node_fit(ask->node, detail)) {
        end(ask, HF_POLICY, detail);
        return;
    }
    ask->sent_ns = hf_boot_ns();
    hf_err err = ask->send(ask, ask->node->base.client, on_answer, ask);
    if (err == HF_OK)
        ask->in_flight = true;
    else if (err != HF_CONN)
        end(ask, err, hf_err_text(err));
}

static hf_lock_node *route(hf_lock_ask *ask)
{
    if (ask->lock != NULL)
        return hf_lock_route(ask->lock);
    if (ask->redis != NULL)
        return hf_lock_node_at(ask->locks, ask->redis);
    return hf_lock_node_of(ask->locks, ask->slot);
}

/* Why it was not answered in time. */
static void give_up(hf_lock_ask *ask)
{
    char why[HF_DETAIL_SIZE];
    hf_err err = hf_node_status(&ask->node->base, why);
    if (err == HF_OK && ask->err != HF_OK)
        (void)snprintf(why, sizeof why, "%s", ask->detail);
    end(ask, err != HF_OK ? err : ask->err != HF_OK ? ask->err : HF_TIMEOUT, why);
}

void hf_ask_pump(hf_lock_client *locks, uint64_t now_ns)
{
    for (hf_lock_ask *ask = locks->asks, *next; ask != NULL; ask = next) {
        next = ask->next;
        if (ask->in_flight)
            continue;
        ask->node = route(ask);
        if (now_ns >= ask->until_ns) {
            give_up(ask);
        } else if (now_ns >= ask->due_ns) {
            ask->due_ns = 0; /* if not now, with the next connection */
            if (hf_lock_node_ready(ask->node))
                send_ask(ask);
        }
    }
}

uint64_t hf_ask_due_ns(const hf_lock_client *locks)
{
    uint64_t due_ns = UINT64_MAX;
    for (const hf_lock_ask *ask = locks->asks; ask != NULL; ask = ask->next) {
        uint64_t at_ns =
            ask->due_ns != 0 && ask->due_ns < ask->until_ns ? ask->due_ns : ask->until_ns;
        if (!ask->in_flight && at_ns < due_ns)
            due_ns = at_ns;
    }
    return due_ns;
}

void hf_ask_end_all(hf_lock_client *locks, const hf_lock_node *node, hf_err err,
                    const char *detail)
{
    for (hf_lock_ask *ask = locks->asks, *next; ask != NULL; ask = next) {
        next = ask->next;
        if (!ask->in_flight && (node == NULL || ask->node == node))
            end(ask, err, detail);
    }
}

static void run_ask(hf_task *task)
{
    hf_lock_ask *ask = HF_CONTAINER(task, hf_lock_ask, task);
    hf_lock_client *locks = ask->locks;
    ask->next = locks->asks;
    locks->asks = ask;
    if (ask->lock != NULL)
        ask->lock->in_flight++;
    if (locks->closing)
        hf_ask_end_all(locks, NULL, HF_CLOSED, hf_err_text(HF_CLOSED));
    else
        hf_ask_pump(locks, hf_boot_ns());
}

static void prepare(hf_lock_ask *ask, hf_lock_client *locks)
{
    uint32_t ms = locks->connect_timeout_ms + locks->request_timeout_ms;
    ask->locks = locks;
    ask->err = HF_OK;
    ask->task.run = run_ask;
    ask->until_ns = hf_boot_ns() + ms * HF_MS_NS;
}

hf_err hf_ask_begin(hf_lock_ask *ask, hf_lock_client *locks)
{
    if (hf_tasks_forked(&locks->tasks))
        return HF_FORKED;
    prepare(ask, locks);
    return hf_tasks_submit(&locks->tasks, &ask->task, owes(ask));
}

hf_err hf_ask_wait(hf_lock_ask *ask, hf_lock_client *locks, char detail[HF_DETAIL_SIZE])
{
    hf_run_waiter waiter = {.again_ms = 0};
    hf_err err = hf_tasks_may_wait(&locks->tasks, detail);
    if (err != HF_OK)
        return err;
    ask->waiter = &waiter;
    prepare(ask, locks);
    err = hf_tasks_await(&locks->tasks, &ask->task, owes(ask), &waiter);
    if (err == HF_OK)
        err = ask->err;
    if (err != HF_OK)
        (void)hf_say(detail, err, "%s",
                     ask->detail[0] != '\0' ? ask->detail : hf_err_text(err));
    return err;
}
