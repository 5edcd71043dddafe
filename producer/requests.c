/* requests.c - the requests of a producer: one state machine.
 *
 *   QUEUED --send--> SENT --answered--> reported (with wait_replicas: CONFIRMING)
 *     ^               |  \
 *     '---refused-----'   '--no answer--> IN_DOUBT --send, same number--> SENT_AGAIN
 *                                            ^ '----refused, no answer-------' |
 *                                                              answered --> reported
 *
 * Each request has a number. One that Redis *answered* with an error at its first sending
 * did nothing; it goes to the front of the submit queue and gets a new number. One
 * without an answer may have been executed, so it keeps its number from then on, even if
 * a later sending is refused. Redis knows the numbers that it has executed, and executes
 * none of them twice.
 *
 * Redis must know each number by itself, not only the highest. Say that 1 to 3 are in
 * flight when the scripts are flushed: 1 is refused, another client loads the script, 2
 * and 3 run, and the connection breaks before any answer. With "3, so everything up to 3"
 * request 1 would now be taken for executed, and its jobs would be nowhere. The script
 * keeps a bit for each number of a span that is wider than the window, so it knows
 * exactly which requests it has executed. The same interleaving can happen among those
 * that are sent again (refused by a server that is loading, for example). So nothing new
 * is sent until each request in doubt has its answer: they are executed before the jobs
 * that were taken after them, and no number falls out of the span.
 *
 * In a cluster all this holds for each node alone (producer/nodes.h): a request in doubt
 * stays with its queue, and is sent again to the node that has the queue then.
 *
 * With wait_replicas an executed request is CONFIRMING until replicas have it, and is
 * reported then. If another server takes over before that, it is IN_DOUBT there. A
 * request that may still become so stays in flight, and its number in the span.
 *
 * The machine as a whole:
 *
 *   RUNS --(closed, all answered)--> FORGETS --(if it may)--> CLOSES
 *
 * Only submit() advances the end. A callback of the client must not: the client may still
 * use what the end would free. */
#include "producer/requests.h"

#include <stdio.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/detail.h"
#include "queue/keys.h"
#include "redis/err.h"
#include "redis/plain.h"

enum {
    WINDOW = 8,                 /* requests in flight */
    BUSY_AT = 2,                /* with this many in flight a batch waits for company */
    GATHER_MS = 1,              /* the longest pause */
    BYTES_IN_FLIGHT = 64 << 20, /* with this many, nothing more is sent */
    SEEN_SPAN = 32,    /* numbers that queue/lua/enqueue.lua remembers one by one */
    REQUEST_MS = 1000, /* until silence is taken for a broken connection; and more for */
    BYTES_PER_MS = 16384, /* what must be carried, and for */
    JOBS_PER_MS = 10,     /* what must be done */
    FORGETS_AT_ONCE = 64
};

static void pump(hf_requests *requests);

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* ---- states ---- */

static bool is_in_flight(hf_request_state state)
{
    return state == HF_REQUEST_SENT || state == HF_REQUEST_SENT_AGAIN ||
           state == HF_REQUEST_CONFIRMING;
}

static bool is_in_doubt(const hf_batch *batch)
{
    return batch->state == HF_REQUEST_IN_DOUBT || batch->state == HF_REQUEST_SENT_AGAIN;
}

/* Whether the queue's next number is in one span with all that may be sent again. One
 * that waits for replicas may do so for longer than others after it. */
static bool is_in_span(const hf_producer_node *node)
{
    for (const hf_batch *b = node->flight.first; b != NULL; b = b->next)
        if (!b->numbered && b->target->number + 1 - b->number >= SEEN_SPAN)
            return false;
    return true;
}

static bool fits_span(const hf_producer_node *node, const hf_batch *batch)
{
    for (const hf_batch *b = node->flight.first; b != NULL; b = b->next)
        if (!b->numbered && b->target == batch->target &&
            batch->number >= b->number + SEEN_SPAN)
            return false;
    return true;
}

static void leave_flight(hf_requests *requests, hf_batch *batch)
{
    hf_producer_node *node = batch->node;
    hf_batches_remove(&node->flight, batch);
    node->in_flight--;
    node->jobs_in_flight -= batch->n;
    node->bytes_in_flight -= batch->charge;
    hf_producer_node_note_oldest(node);
    if (--batch->target->in_flight == 0)
        hf_producer_nodes_landed(&requests->nodes, batch->target);
}

static void enter_flight(hf_requests *requests, hf_batch *batch)
{
    hf_producer_node *node = batch->node;
    HF_ASSERT(batch->numbered || is_in_doubt(batch) || fits_span(node, batch));
    hf_batches_append(&node->flight, batch);
    node->in_flight++;
    node->jobs_in_flight += batch->n;
    node->bytes_in_flight += batch->charge;
    hf_producer_node_note_oldest(node);
    batch->target->in_flight++;
    batch->target->last_node = node;
    batch->target->used = true;
    if (batch->deadline_ns < requests->next_deadline_ns)
        requests->next_deadline_ns = batch->deadline_ns;
}

/* The one place that changes a state, the lists and what is counted of them. A queued
 * batch was taken out of the submit queue before. */
static void become(hf_requests *requests, hf_batch *batch, hf_request_state state)
{
    const bool stays = state == HF_REQUEST_CONFIRMING;
    if (is_in_flight(batch->state) && !stays)
        leave_flight(requests, batch);
    else if (batch->state == HF_REQUEST_IN_DOUBT)
        hf_batches_remove(&batch->node->doubt, batch);
    if (is_in_doubt(batch))
        batch->node->n_in_doubt--;
    batch->state = state;
    if (!stays)
        batch->node = hf_producer_node_of(batch->target);
    if (is_in_doubt(batch))
        batch->node->n_in_doubt++;
    if (is_in_flight(state) && !stays)
        enter_flight(requests, batch);
    else if (state == HF_REQUEST_IN_DOUBT)
        hf_batches_in_turn(&batch->node->doubt, batch);
    else if (state == HF_REQUEST_QUEUED)
        hf_submit_put_back(&requests->queue, batch);
}

/* To be sent again: as a new request, or as the same one. */
static void back(hf_requests *requests, hf_batch *batch)
{
    become(requests, batch, is_in_doubt(batch) ? HF_REQUEST_IN_DOUBT : HF_REQUEST_QUEUED);
}

/* ---- ends ---- */

/* Gives the batch's jobs their answers, once. */
static void report(hf_requests *requests, hf_batch *batch, hf_err err,
                   const hf_reply *codes, const char *detail)
{
    if (batch->reported)
        return;
    batch->reported = true;
    hf_submit_report(&requests->queue, batch,
                     &(hf_outcome){.err = err, .codes = codes, .detail = detail});
}

static void end(hf_requests *requests, hf_batch *batch, hf_err err, const hf_reply *codes,
                const char *detail)
{
    become(requests, batch, HF_REQUEST_ENDED);
    report(requests, batch, err, codes, detail);
    hf_batch_free(batch);
}

/* For one that was never sent, in time. */
static void end_unsent(hf_requests *requests, hf_batch *batch)
{
    const hf_producer_node *node = hf_producer_node_of(batch->target);
    char text[HF_DETAIL_SIZE], why[HF_DETAIL_SIZE];
    if (batch->refused != HF_OK && batch->refused != HF_DEADLINE) {
        end(requests, batch, batch->refused, NULL, requests->why);
        return;
    }
    hf_err err = hf_node_status(&node->base, why);
    const char *what = err == HF_CONN ? "Redis cannot be reached" : "not sent in time";
    bool ready = node->base.client != NULL && hf_client_ready(node->base.client);
    (void)snprintf(text, sizeof text, "%s%s%.220s", what, ready ? "" : ": ",
                   ready ? "" : why);
    end(requests, batch, err == HF_READONLY ? HF_READONLY : HF_TIMEOUT, NULL, text);
}

static void end_all(hf_requests *requests, hf_batches *unsent, hf_err err,
                    const char *detail)
{
    while (unsent->first != NULL) {
        hf_batch *batch = unsent->first;
        hf_batches_remove(unsent, batch);
        if (err != HF_OK)
            end(requests, batch, err, NULL, detail);
        else
            end_unsent(requests, batch);
    }
}

/* All for a node that were never sent, with the fault of its client. */
static void fail_unsent(hf_requests *requests, hf_producer_node *node)
{
    hf_batches unsent = {NULL, NULL};
    char why[HF_DETAIL_SIZE];
    hf_err err = hf_node_status(&node->base, why);
    hf_submit_expire(&requests->queue, &node->line, 0, &unsent);
    end_all(requests, &unsent, err, why);
}

static void note_deadline(hf_requests *requests, const hf_batch *batch)
{
    if (batch->deadline_ns < requests->next_deadline_ns)
        requests->next_deadline_ns = batch->deadline_ns;
}

/* One in flight stays there: its answer is still to come, and no caller waits for it. */
static void expire_at(hf_requests *requests, hf_producer_node *node, uint64_t now_ns)
{
    static const char silent[] = "sent, and not answered in time",
                      unconfirmed[] = "done, and not confirmed by replicas in time";
    for (hf_batch *batch = node->flight.first; batch != NULL; batch = batch->next) {
        if (batch->reported)
            continue;
        if (batch->deadline_ns <= now_ns) {
            const bool done = batch->state == HF_REQUEST_CONFIRMING;
            requests->unanswered = true;
            report(requests, batch, done ? HF_UNCONFIRMED : HF_UNSURE, NULL,
                   done ? unconfirmed : silent);
        } else {
            note_deadline(requests, batch);
        }
    }
    hf_batch *next;
    for (hf_batch *batch = node->doubt.first; batch != NULL; batch = next) {
        next = batch->next;
        if (batch->deadline_ns <= now_ns)
            end(requests, batch, HF_UNSURE, NULL, silent);
        else
            note_deadline(requests, batch);
    }
}

/* All whose deadline has come. */
static void expire(hf_requests *requests, uint64_t now_ns)
{
    hf_batches unsent = {NULL, NULL};
    hf_submit_expire(&requests->queue, NULL, now_ns, &unsent);
    end_all(requests, &unsent, HF_OK, "");
    requests->next_deadline_ns = UINT64_MAX;
    expire_at(requests, hf_producer_node_from(requests->nodes.all.away), now_ns);
    for (hf_node *at = requests->nodes.all.first; at != NULL; at = at->next)
        expire_at(requests, hf_producer_node_from(at), now_ns);
}

/* ---- answers ---- */

/* Errors that are waited out. HF_DEADLINE is one of them, because a batch ends here at
 * its own deadline: if Redis found it late earlier, its clock differs from our estimate,
 * and the answer has corrected the estimate. HF_OOM is none: as long as Redis is full,
 * the caller has to know. */
static bool may_pass(hf_err err)
{
    return err != HF_OOM &&
           hf_err_is(err, HF_ERR_AT_ONCE | HF_ERR_PASSES | HF_ERR_NO_WRITES);
}

static void unanswered(hf_requests *requests, hf_batch *batch)
{
    requests->unanswered = true;
    if (batch->reported) {
        end(requests, batch, HF_UNSURE, NULL, "");
        return;
    }
    become(requests, batch, HF_REQUEST_IN_DOUBT);
}

/* Ids that were made here exist already: Redis took no job, and will take them with other
 * ids. The number was not used either, so no earlier sending was executed. */
static void ids_taken(hf_requests *requests, hf_batch *batch, const hf_reply *codes)
{
    if (batch->reported) {
        end(requests, batch, HF_UNSURE, NULL, "");
        return;
    }
    hf_batch_rename(batch, &requests->run->lock, &requests->queue.ids, codes);
    back(requests, batch);
}

/* Nothing happened: the queue, or the whole node, is asked again after a pause. */
static void pause_for(hf_requests *requests, const hf_batch *batch, hf_err err,
                      const hf_answer *answer)
{
    if (!hf_err_is(err, HF_ERR_OF_CLUSTER))
        hf_server_pause(batch->node->base.redis, err, answer->sent_ns);
    if (err != HF_DEADLINE)
        (void)snprintf(requests->why, sizeof requests->why, "%s", answer->detail);
}

/* Nothing happened, nor by an earlier sending: the script looks for its number first. */
static void was_sharded(hf_requests *requests, hf_batch *batch, const hf_answer *answer)
{
    hf_err err = hf_submit_divide(&requests->queue, batch->target, answer->detail);
    if (err == HF_OK && !batch->reported) {
        err = hf_submit_divide_batch(&requests->queue, batch, requests->id);
        batch->reported = err == HF_OK; /* its parts will be */
    }
    end(requests, batch, err, NULL, hf_err_text(err));
}

static void was_refused(hf_requests *requests, hf_batch *batch, hf_err err,
                        const hf_answer *answer)
{
    if (err == HF_SHARDED) {
        was_sharded(requests, batch, answer);
        return;
    }
    if (hf_err_is(err, HF_ERR_OF_CLUSTER))
        hf_producer_nodes_refused(batch->node, batch->target, answer);
    if (batch->reported || !may_pass(err) || (is_in_doubt(batch) && err == HF_DEADLINE)) {
        /* An earlier sending may have done it, and this answer does not say. */
        end(requests, batch, is_in_doubt(batch) ? HF_UNSURE : err, NULL, answer->detail);
        return;
    }
    pause_for(requests, batch, err, answer);
    /* The last try may come too late: why the ones before it were refused says more. */
    if (err != HF_DEADLINE || batch->refused == HF_OK)
        batch->refused = hf_err_told(err);
    back(requests, batch);
}

/* ---- replicas ---- */

static void on_confirmed(void *arg, hf_err err, const char *detail)
{
    hf_batch *batch = arg;
    hf_requests *requests = batch->requests;
    if (err == HF_UNSURE) {
        unanswered(requests, batch);
    } else if (err == HF_OK) {
        end(requests, batch, HF_OK, NULL, "");
    } else {
        requests->unanswered = true; /* the caller may send it again */
        end(requests, batch, HF_UNCONFIRMED, NULL, detail);
    }
    pump(requests);
}

/* It was executed. */
static void executed(hf_requests *requests, hf_batch *batch, const hf_enqueued *got)
{
    hf_producer_node *node = batch->node;
    hf_err met = hf_batch_meet(batch, got);
    if (met == HF_OK && (requests->wait_replicas == 0 || batch->reported)) {
        end(requests, batch, HF_OK, got->codes, "");
        return;
    }
    if (met != HF_OK || hf_batch_keep(batch, got->codes) != HF_OK) {
        requests->unanswered = true;
        end(requests, batch, HF_UNCONFIRMED, NULL, hf_err_text(HF_NOMEM));
        return;
    }
    become(requests, batch, HF_REQUEST_CONFIRMING);
    uint64_t until_ns = batch->deadline_ns;
    if (requests->wait_replicas_ms != 0)
        until_ns =
            earlier(until_ns, hf_boot_ns() + requests->wait_replicas_ms * HF_MS_NS);
    batch->confirm = (hf_confirm){.life = hf_client_life(node->base.client),
                                  .wanted = requests->wait_replicas,
                                  .until_ns = until_ns,
                                  .cb = on_confirmed,
                                  .arg = batch};
    hf_replicas_ask(node->base.replicas, &batch->confirm);
}

/* The queue leaves its node: another one has to confirm it, after the same request. */
static void withdraw(void *owner, hf_target *target)
{
    hf_requests *requests = owner;
    hf_producer_node *node = target->last_node;
    hf_batch *next;
    for (hf_batch *batch = node->flight.first; batch != NULL; batch = next) {
        next = batch->next;
        if (batch->target != target || batch->state != HF_REQUEST_CONFIRMING)
            continue;
        hf_replicas_withdraw(node->base.replicas, &batch->confirm);
        unanswered(requests, batch);
    }
}

static void note_time(hf_producer_node *node, int64_t now_ms, uint64_t sent_ns)
{
    (void)hf_server_sample(node->base.redis, now_ms, sent_ns);
    node->clock_known = true;
}

static void on_answer(const hf_answer *answer, void *arg)
{
    hf_batch *batch = arg;
    hf_requests *requests = batch->requests;
    hf_enqueued got;
    hf_err err = hf_enqueued_read(answer, &got);
    if (err == HF_OK || err == HF_DEADLINE || err == HF_EXISTS)
        note_time(batch->node, got.now_ms, answer->sent_ns);
    if (err == HF_OK) {
        hf_server_accepted(batch->node->base.redis);
        hf_producer_nodes_accepted(batch->target);
        batch->accepted_ms = got.repeated ? 0 : got.now_ms;
        executed(requests, batch, &got);
    } else if (err == HF_EXISTS) {
        ids_taken(requests, batch, got.codes);
    } else if (err == HF_UNSURE) {
        unanswered(requests, batch);
    } else if (err == HF_PROTO) {
        requests->unanswered = true; /* something was done, and it is not known what */
        end(requests, batch, HF_UNSURE, NULL, "Redis answered in an unexpected shape");
    } else {
        was_refused(requests, batch, err, answer);
    }
    pump(requests);
}

/* ---- sending ---- */

static int64_t ms_between(uint64_t from_ns, uint64_t to_ns)
{
    return to_ns > from_ns ? (int64_t)((to_ns - from_ns) / HF_MS_NS) : 0;
}

/* Redis forgets an executed request after a time on its own clock. If that clock is set
 * forward, the request would be executed again; so it must not arrive after that time.
 */
static int64_t not_after_of(const hf_producer_node *node, hf_batch *batch,
                            int64_t remember_ms, uint64_t now_ns)
{
    int64_t not_after = 0, now_ms = 0;
    if (node->clock_known) {
        now_ms = hf_server_now(node->base.redis);
        not_after = now_ms + ms_between(now_ns, batch->deadline_ns);
    }
    if (!is_in_doubt(batch))
        batch->known_until_ms = now_ms == 0 ? 0 : now_ms + remember_ms;
    else if (batch->known_until_ms != 0 &&
             (not_after == 0 || not_after > batch->known_until_ms))
        not_after = batch->known_until_ms;
    return not_after;
}

static hf_enqueue_args args_of(hf_requests *requests, hf_batch *batch, uint64_t now_ns)
{
    /* Longer than any request that is in flight beside it can be sent again. */
    if (batch->deadline_ns - batch->taken_ns > requests->longest_ns)
        requests->longest_ns = batch->deadline_ns - batch->taken_ns;
    int64_t remember_ms = 2 * (int64_t)(requests->longest_ns / HF_MS_NS);
    if (requests->remember_ms > remember_ms)
        remember_ms = requests->remember_ms;
    return (hf_enqueue_args){.producer = requests->id,
                             .number = batch->number,
                             .not_after = not_after_of(hf_producer_node_of(batch->target),
                                                       batch, remember_ms, now_ns),
                             .remember_ms = remember_ms,
                             .waited_ms = ms_between(batch->sealed_ns, now_ns),
                             .made = batch->made,
                             .options = batch->options};
}

/* False: the client takes nothing now. */
static bool send_batch(hf_requests *requests, hf_producer_node *node, hf_batch *batch,
                       uint64_t now_ns)
{
    hf_target *target = batch->target;
    const uint64_t last = target->number, before = batch->number;
    batch->requests = requests;
    if (batch->items == NULL && hf_batch_seal(batch, now_ns) != HF_OK) {
        end(requests, batch, HF_NOMEM, NULL, hf_err_text(HF_NOMEM));
        return true;
    }
    if (!is_in_doubt(batch) && !batch->numbered)
        batch->number = ++target->number;
    hf_producer_nodes_register(&requests->nodes, target);
    size_t ms = REQUEST_MS + (node->bytes_in_flight + batch->charge) / BYTES_PER_MS +
                (node->jobs_in_flight + batch->n) / JOBS_PER_MS;
    hf_enqueue_args args = args_of(requests, batch, now_ns);
    hf_err err = hf_op_enqueue(node->base.client, &target->queue, &args, batch->items,
                               batch->n, (uint32_t)ms, on_answer, batch);
    if (err == HF_OK) {
        if (!is_in_doubt(batch))
            batch->turn = ++requests->turns;
        batch->sent_ns = now_ns;
        become(requests, batch,
               is_in_doubt(batch) ? HF_REQUEST_SENT_AGAIN : HF_REQUEST_SENT);
        return true;
    }
    target->number = last;
    batch->number = before;
    if (err == HF_CONN)
        back(requests, batch);
    else
        end(requests, batch, is_in_doubt(batch) ? HF_UNSURE : err, NULL,
            hf_err_text(err));
    return err != HF_CONN;
}

/* The next batch to send, or NULL. */
static hf_batch *next_batch(hf_requests *requests, hf_producer_node *node,
                            uint64_t now_ns, uint64_t *later_ns)
{
    if (node->n_in_doubt > 0)
        return node->doubt.first;
    if (!is_in_span(node))
        return NULL;
    /* While Redis has enough to do, a batch gains more by growing than by waiting there.
     * Beside one request it has, unless the next is as large: then Redis finds work when
     * it has done the one, and the callers of the other call again meanwhile. */
    size_t enough = node->in_flight >= BUSY_AT ? SIZE_MAX : node->jobs_in_flight;
    return hf_submit_take(&requests->queue, &node->line, enough, GATHER_MS * HF_MS_NS,
                          now_ns, later_ns);
}

static void on_timer(uv_timer_t *timer)
{
    hf_requests *requests = timer->data;
    uint64_t now_ns = hf_boot_ns();
    bool idle;
    requests->armed_ns = UINT64_MAX;
    if (now_ns >= requests->next_deadline_ns ||
        now_ns >= hf_submit_look(&requests->queue, &idle))
        expire(requests, now_ns);
    pump(requests);
}

/* The loop's idea of now may be older than ours, and then the timer is early: it is
 * simply set again. */
static void arm(hf_requests *requests, uint64_t due_ns, uint64_t now_ns)
{
    if (due_ns == requests->armed_ns)
        return;
    requests->armed_ns = due_ns;
    if (due_ns == UINT64_MAX)
        (void)uv_timer_stop(&requests->timer);
    else
        (void)uv_timer_start(&requests->timer, on_timer,
                             (uint64_t)ms_between(now_ns, due_ns) + 1, 0);
}

/* Sends to one node what may be sent now. */
static void send_to(hf_requests *requests, hf_producer_node *node, uint64_t now_ns,
                    uint64_t *later_ns)
{
    bool may_send = !node->clock_asked && hf_client_ready(node->base.client);
    if (hf_client_is_refused(node->base.client))
        fail_unsent(requests, node);
    while (may_send && now_ns >= node->base.redis->pause_until_ns &&
           node->in_flight < WINDOW && node->bytes_in_flight < BYTES_IN_FLIGHT) {
        hf_batch *batch = next_batch(requests, node, now_ns, later_ns);
        if (batch == NULL)
            break;
        if (batch->deadline_ns <= now_ns && !is_in_doubt(batch))
            end_unsent(requests, batch);
        else
            may_send = send_batch(requests, node, batch, now_ns);
    }
}

/* Sends what may be sent now, and sets the timer for the rest. True: the submit queue is
 * closed, and all is answered. */
static bool send_all(hf_requests *requests)
{
    hf_producer_nodes *nodes = &requests->nodes;
    uint64_t now_ns = hf_boot_ns(), later_ns = UINT64_MAX, pause_ns = UINT64_MAX;
    bool idle;
    hf_producer_nodes_route(nodes, now_ns);
    for (hf_node *at = nodes->all.first; at != NULL; at = at->next) {
        hf_producer_node *node = hf_producer_node_from(at);
        send_to(requests, node, now_ns, &later_ns);
        if (now_ns < node->base.redis->pause_until_ns)
            pause_ns = earlier(pause_ns, node->base.redis->pause_until_ns);
    }
    if (hf_nodes_are_refused(&nodes->all))
        fail_unsent(requests, hf_producer_node_from(nodes->all.away));
    uint64_t next_ns = hf_submit_look(&requests->queue, &idle);
    requests->run->unsent = next_ns != UINT64_MAX;
    next_ns = earlier(next_ns, requests->next_deadline_ns);
    if (!requests->queue.run
             ->by_caller) /* else the call that began the batch sees to it */
        next_ns = earlier(next_ns, later_ns);
    next_ns = earlier(next_ns, earlier(pause_ns, nodes->due_ns));
    arm(requests, next_ns, now_ns);
    return idle;
}

/* The same in a callback of the client, which leaves the end to submit(). */
static void pump(hf_requests *requests)
{
    if (requests->stage == HF_REQUESTS_RUNS && send_all(requests))
        hf_run_loop_wake(requests->run);
}

/* ---- the end ---- */

static void on_handle_closed(uv_handle_t *handle)
{
    hf_requests *requests = handle->data;
    if (--requests->handles == 0)
        requests->on_end(requests->arg);
}

static void on_nodes_closed(void *owner)
{
    hf_requests *requests = owner;
    hf_run_loop_close_wakeup(requests->run, on_handle_closed);
    uv_close((uv_handle_t *)&requests->timer, on_handle_closed);
}

static void close_nodes(hf_requests *requests)
{
    requests->stage = HF_REQUESTS_CLOSES;
    hf_producer_nodes_close(&requests->nodes);
}

/* In a cluster a queue may have its first jobs before the registry's node is connected:
 * a producer that ends soon waits for that node, for a while. */
static bool may_end(hf_requests *requests)
{
    const uint64_t now_ns = hf_boot_ns();
    if (hf_producer_nodes_register_all(&requests->nodes))
        return true;
    if (requests->register_until_ns == 0)
        requests->register_until_ns = now_ns + REQUEST_MS * HF_MS_NS;
    if (requests->register_until_ns <= now_ns)
        return true;
    arm(requests, earlier(requests->register_until_ns, requests->nodes.due_ns), now_ns);
    return false;
}

static void on_forgotten(const hf_answer *answer, void *arg)
{
    hf_requests *requests = arg;
    (void)answer; /* a key that is not removed expires */
    requests->forgets--;
    hf_run_loop_wake(requests->run);
}

/* The next target that was used, or NULL. A call that came too late may still add others.
 */
static hf_target *next_target(hf_requests *requests)
{
    hf_target *found = NULL;
    hf_run_loop_lock(requests->run);
    while (found == NULL &&
           (requests->target != NULL || requests->bucket < HF_TARGET_BUCKETS)) {
        hf_target *target = requests->target;
        if (target != NULL && target->used)
            found = target;
        requests->target =
            target != NULL ? target->next : requests->queue.buckets[requests->bucket++];
    }
    hf_run_loop_unlock(requests->run);
    return found;
}

/* A request without an answer may still reach Redis, which must then know whether it was
 * executed. So Redis may forget them only when all are answered. */
static bool may_forget(const hf_requests *requests)
{
    return requests->remember_ms == 0 && !requests->unanswered;
}

static void forget(hf_requests *requests)
{
    hf_target *target = NULL;
    while (may_forget(requests) && requests->forgets < FORGETS_AT_ONCE &&
           (target = next_target(requests)) != NULL) {
        hf_client *client = hf_producer_node_of(target)->base.client;
        if (client != NULL && hf_op_forget(client, &target->queue, requests->id,
                                           on_forgotten, requests) == HF_OK)
            requests->forgets++;
    }
    if (requests->forgets == 0)
        close_nodes(requests);
}

/* ---- the interface ---- */

static void submit(void *arg)
{
    hf_requests *requests = arg;
    if (requests->stage == HF_REQUESTS_RUNS && send_all(requests) && may_end(requests)) {
        requests->stage = HF_REQUESTS_FORGETS;
        requests->armed_ns = UINT64_MAX;
        (void)uv_timer_stop(&requests->timer);
    }
    if (requests->stage == HF_REQUESTS_FORGETS)
        forget(requests);
}

static void flush(void *arg)
{
    const hf_requests *requests = arg;
    if (requests->stage != HF_REQUESTS_RUNS)
        return;
    for (const hf_node *node = requests->nodes.all.first; node != NULL; node = node->next)
        hf_client_flush(node->client);
}

/* Scripts never wait, so an answer comes at once; that of replicas does not. */
static bool expects(void *arg)
{
    return ((const hf_requests *)arg)->wait_replicas == 0;
}

const hf_run_hooks hf_requests_hooks = {submit, flush, expects};

static void on_time(const hf_answer *answer, void *arg)
{
    hf_producer_node *node = arg;
    hf_requests *requests = hf_producer_nodes_of(node)->owner;
    int64_t now_ms;
    node->clock_asked = false;
    if (hf_plain_time_read(answer, &now_ms) == HF_OK)
        note_time(node, now_ms, answer->sent_ns);
    pump(requests);
}

/* Redis's time belongs to a connection: the next one may lead to another server. It is
 * asked for first, because every request carries its not_after. */
static void on_ready(hf_requests *requests, hf_producer_node *node)
{
    node->clock_known = false;
    node->clock_asked = hf_plain_time(node->base.client, on_time, node) == HF_OK;
    if (&node->line == requests->nodes.registry.line)
        (void)hf_producer_nodes_register_all(&requests->nodes);
}

static void on_event(hf_producer_node *node, hf_err err)
{
    hf_requests *requests = hf_producer_nodes_of(node)->owner;
    if (requests->stage != HF_REQUESTS_RUNS) {
        hf_run_loop_wake(requests->run);
        return;
    }
    if (err == HF_OK)
        on_ready(requests, node);
    pump(requests);
}

static void on_change(void *owner)
{
    hf_requests *requests = owner;
    pump(requests);
    if (requests->register_until_ns != 0) /* the end waits for it */
        hf_run_loop_wake(requests->run);
}

static const hf_producer_nodes_hooks nodes_hooks = {.on_event = on_event,
                                                    .on_change = on_change,
                                                    .withdraw = withdraw,
                                                    .on_closed = on_nodes_closed};

hf_err hf_requests_start(hf_requests *requests, const hf_producer_opts *opts,
                         char detail[HF_DETAIL_SIZE])
{
    requests->armed_ns = requests->next_deadline_ns = UINT64_MAX;
    requests->longest_ns = opts->deadline_ms * HF_MS_NS;
    requests->remember_ms = opts->remember_ms;
    requests->wait_replicas = opts->wait_replicas;
    requests->wait_replicas_ms = opts->wait_replicas_ms;
    requests->nodes.queue = &requests->queue;
    requests->nodes.hooks = &nodes_hooks;
    requests->nodes.owner = requests;
    hf_err err =
        hf_producer_nodes_open(&requests->nodes, requests->run->uv, opts, detail);
    if (err != HF_OK)
        return err;
    int made = uv_timer_init(requests->run->uv, &requests->timer);
    HF_ASSERT(made == 0);
    requests->timer.data = requests;
    requests->handles = 2;
    return HF_OK;
}
