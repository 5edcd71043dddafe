/* shards.c - a queue of the plan that is divided into shards (queue/shards.h).
 *
 * The worker learns of it by the refusal of a claim from the queue's own keys, or from
 * the answer to the script that divides the queue, if the plan wants that. Then each
 * shard is a member of the queue. The own keys stay the first member: they are claimed
 * every 10 s, and refused again. So the worker notices when the queue is not divided any
 * more, because Redis has lost its data, and claims the jobs that come there then.
 *
 * The limits of the plan are divided: each shard has its part of max_running, and the
 * whole rate in a longer period. */
#include "worker/queues/shards.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/detail.h"
#include "queue/shards.h"
#include "worker/node/site.h"
#include "worker/node/sites.h"
#include "worker/plan.h"
#include "worker/queues/claim_state.h"
#include "worker/queues/queues.h"
#include "worker/report.h"
#include "worker/worker.h"

/* ---- limits ---- */

hf_shard_limits hf_shards_limits_of(const hf_served *served)
{
    const hf_whole *whole = served->whole;
    const hf_worker_queue *all = &whole->limits;
    unsigned n = whole->n_shards == 0 ? 1 : whole->n_shards;
    return (hf_shard_limits){
        .max_running = hf_shard_max_running(all->max_running, served->shard, n),
        .rate_limit = all->rate_limit,
        .rate_per_ms = (int64_t)all->rate_per_ms * n,
    };
}

/* ---- members ---- */

static hf_served *find_member(const hf_whole *whole, const hf_queue *queue)
{
    hf_served *m = whole->members;
    while (m != NULL && strcmp(m->queue.prefix, queue->prefix) != 0)
        m = m->next_member;
    return m;
}

/* Shards that the answer does not name leave: Redis has other data. True: there were
 * some.
 */
static bool leave_others(hf_whole *whole, const hf_shards *shards)
{
    bool any = false;
    for (hf_served *m = whole->members->next_member; m != NULL; m = m->next_member) {
        hf_queue queue;
        bool named = false;
        for (unsigned i = 0; i < shards->n && !named; i++) {
            hf_shards_queue(shards, &whole->members->queue, i, &queue);
            named = strcmp(m->queue.prefix, queue.prefix) == 0;
        }
        if (!named && !hf_queue_is(m, HF_Q_GONE)) {
            hf_queue_apply(m, HF_E_LEAVE);
            any = true;
        }
    }
    return any;
}

/* True: it is new, or was not served. */
static bool put_shard(hf_whole *whole, const hf_shards *shards, unsigned i)
{
    hf_queue queue;
    hf_shards_queue(shards, &whole->members->queue, i, &queue);
    hf_served *m = find_member(whole, &queue);
    bool put = m == NULL || hf_queue_is(m, HF_Q_GONE);
    if (m == NULL)
        m = hf_queue_add_member(whole, &queue);
    else if (put)
        hf_queue_come_back(m);
    m->shard = i;
    return put;
}

/* ---- what is in the way ---- */

static size_t missing(const hf_whole *whole, const hf_shards *shards)
{
    size_t n = 0;
    for (unsigned i = 0; i < shards->n; i++) {
        hf_queue queue;
        hf_shards_queue(shards, &whole->members->queue, i, &queue);
        n += find_member(whole, &queue) == NULL ? 1 : 0;
    }
    return n;
}

/* False: `why`. A limit that cannot be divided would not hold. */
static bool can_serve(const hf_whole *whole, const hf_shards *shards,
                      char why[HF_DETAIL_SIZE])
{
    size_t room = hf_queues_room(whole->members->worker);
    size_t needed = missing(whole, shards);
    if (hf_plan_shards_fit(&whole->limits, shards->n, why) != HF_OK)
        return false;
    if (needed <= room)
        return true;
    (void)hf_say(why, HF_INVALID,
                 "expected at most %zu more shards beside the other queues and their "
                 "shards, found %zu",
                 room, needed);
    return false;
}

static void report_unserved(hf_whole *whole, const char *why)
{
    const hf_log_field fields[] = {{.key = "queue", .text = hf_queue_whole_name(whole)},
                                   {.key = "error", .text = why}};
    if (!whole->unserved)
        hf_report(whole->members->worker, HF_LOG_ERROR,
                  "the shards of a queue cannot be served", fields, HF_COUNT(fields));
    whole->unserved = true;
}

/* ---- to learn ---- */

static void serve(hf_whole *whole, const hf_shards *shards)
{
    hf_worker *w = whole->members->worker;
    bool some_left = leave_others(whole, shards), some_came = false;
    bool other_number = whole->n_shards != shards->n;
    whole->unserved = false;
    whole->n_shards = shards->n;
    for (unsigned i = 0; i < shards->n; i++)
        some_came = put_shard(whole, shards, i) || some_came;
    if (!some_left && !some_came)
        return;
    if (other_number)
        for (hf_served *m = whole->members; m != NULL; m = m->next_member)
            m->registration.done = m->registration.done && m == whole->members;
    const hf_log_field fields[] = {{.key = "queue", .text = hf_queue_whole_name(whole)},
                                   {.key = "shards", .number = shards->n}};
    hf_report(w, HF_LOG_INFO, "a queue is divided into shards", fields, HF_COUNT(fields));
    hf_queues_order(w, w->queues->wholes, w->queues->n_wholes);
    hf_queues_changed(w, some_left);
    hf_sites_register(w);
    w->turn_due = true;
}

static void learn(hf_whole *whole, const hf_shards *shards)
{
    char why[HF_DETAIL_SIZE];
    if (hf_queue_whole_is_gone(whole))
        return;
    if (can_serve(whole, shards, why))
        serve(whole, shards);
    else
        report_unserved(whole, why);
}

bool hf_shards_learn(hf_served *served, const char *words)
{
    hf_shards shards;
    if (served != served->whole->members || hf_shards_refused(&shards, words) != HF_OK)
        return false;
    learn(served->whole, &shards);
    served->worker->heard = served->claim.was_answered = true;
    return true;
}

/* ---- to divide it, as the plan says ---- */

/* A failed division is tried again after the next check or reconnect, like a
 * registration. The number in Redis counts: a queue keeps the one that it got before its
 * first job. */
static void on_divided(const hf_answer *answer, void *arg)
{
    hf_served *served = arg;
    hf_whole *whole = served->whole;
    hf_divided divided;
    char why[HF_DETAIL_SIZE];
    hf_err err = hf_divided_read(answer, &divided);
    hf_queue_registered(served, served->site, err, answer->detail);
    if (err != HF_OK || served->worker->phase == HF_ENDED)
        return;
    if (divided.shards.n != 0)
        learn(whole, &divided.shards);
    uint32_t wanted = whole->limits.shards;
    if (wanted == 0 || wanted == whole->logged_shards ||
        hf_divided_is(&divided, wanted, why))
        return;
    whole->logged_shards = wanted;
    const hf_log_field fields[] = {{.key = "queue", .text = hf_queue_whole_name(whole)},
                                   {.key = "wanted", .number = wanted},
                                   {.key = "error", .text = why}};
    hf_report(served->worker, HF_LOG_WARN, "the number of shards is not that of the file",
              fields, HF_COUNT(fields));
}

hf_err hf_shards_divide(hf_served *served)
{
    hf_shards wanted;
    const hf_whole *whole = served->whole;
    hf_err err =
        hf_shards_make(&wanted, hf_queue_whole_name(whole), whole->limits.shards);
    if (err == HF_OK)
        err = hf_op_shards(served->site->base.client, &served->queue, 0, &wanted,
                           on_divided, served);
    return err;
}
