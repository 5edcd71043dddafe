/* requests.c - what becomes of a request.
 *
 *   inbox --send--> flight --answered--> told
 *     ^               |  \
 *     '--refused------'   '--no answer--> doubt --send again, same number--> flight ...
 *
 * Each request has a number. One that Redis *answered* with an error at its first sending
 * did nothing; it goes to the front of the inbox and gets a new number. One whose answer
 * never came may have been executed, so it keeps its number from then on, whatever is
 * answered later; Redis knows the numbers that it has executed, and executes none of them
 * twice.
 *
 * Redis must know each number by itself, not only the highest. Say that 1 to 3 are in
 * flight when the scripts are flushed: 1 is refused, somebody loads the script, 2 and 3
 * run, and the connection breaks before any answer. With "3, so everything up to 3"
 * request 1 would now be taken for executed, and its jobs would be nowhere. The script
 * keeps a bit for each number of a span that is wider than the window, so it says truly
 * what it has done. The same interleaving can happen among those that are sent again
 * (refused by a server that is loading, for example). So nothing new is sent until each
 * of those has its answer: they are executed before what was taken after them, and no
 * number falls out of the span. */
#include "base/base.h"
#include "base/clock.h"
#include "producer/engine.h"

enum {
    WINDOW = 8,                 /* requests in flight */
    BUSY_AT = 2,                /* with so many in flight a batch waits for company */
    GATHER_MS = 1,              /* and so long at most */
    BYTES_IN_FLIGHT = 64 << 20, /* with so many, nothing more is sent */
    SEEN_SPAN = 32,    /* numbers that queue/lua/enqueue.lua remembers one by one */
    REQUEST_MS = 1000, /* until silence is taken for a broken connection; and more for */
    BYTES_PER_MS = 16384, /* what must be carried, and for */
    JOBS_PER_MS = 10      /* what must be done */
};

static void on_registered(const hf_answer *answer, void *arg)
{
    hf_lane *lane = arg;
    if (answer->err != HF_OK)
        lane->registered_in = 0; /* again with its next request */
}

/* Once in each life of the server, which may have come back empty. */
static void register_queue(hf_engine *engine, hf_lane *lane)
{
    if (lane->registered_in != engine->server_lives &&
        hf_op_register(engine->client, &lane->queue, on_registered, lane) == HF_OK)
        lane->registered_in = engine->server_lives;
}

static int64_t ms_between(uint64_t from_ns, uint64_t to_ns)
{
    return to_ns > from_ns ? (int64_t)((to_ns - from_ns) / HF_MS_NS) : 0;
}

/* What Redis remembers of a sending that was not answered ends by Redis's clock. If that
 * was set forward, the request would be executed again; so it must not come after that.
 */
static int64_t not_after_of(const hf_engine *engine, hf_batch *batch, int64_t remember_ms,
                            uint64_t now_ns)
{
    int64_t not_after = 0, now_ms = 0;
    if (engine->clock_ms != 0) {
        now_ms = engine->clock_ms + ms_between(engine->clock_ns, now_ns);
        not_after = now_ms + ms_between(now_ns, batch->deadline_ns);
    }
    if (!batch->doubted)
        batch->known_until_ms = now_ms == 0 ? 0 : now_ms + remember_ms;
    else if (batch->known_until_ms != 0 &&
             (not_after == 0 || not_after > batch->known_until_ms))
        not_after = batch->known_until_ms;
    return not_after;
}

static hf_enqueue_args args_of(hf_engine *engine, hf_batch *batch, uint64_t now_ns)
{
    /* Longer than any request that is in flight beside it can be sent again. */
    if (batch->deadline_ns - batch->taken_ns > engine->longest_ns)
        engine->longest_ns = batch->deadline_ns - batch->taken_ns;
    int64_t remember_ms = 2 * (int64_t)(engine->longest_ns / HF_MS_NS);
    if (engine->remember_ms > remember_ms)
        remember_ms = engine->remember_ms;
    return (hf_enqueue_args){.producer = engine->id,
                             .number = batch->number,
                             .not_after =
                                 not_after_of(engine, batch, remember_ms, now_ns),
                             .remember_ms = remember_ms,
                             .waited_ms = ms_between(batch->sealed_ns, now_ns),
                             .made = batch->made};
}

static void now_in_flight(hf_engine *engine, hf_batch *batch)
{
    const hf_batch *oldest = engine->flight.first;
    HF_ASSERT(oldest == NULL || batch->numbered || batch->doubted ||
              batch->number - oldest->number < SEEN_SPAN);
    hf_batches_append(&engine->flight, batch);
    engine->in_flight++;
    engine->jobs_in_flight += batch->n;
    engine->bytes_in_flight += batch->charge;
    batch->lane->used = true;
    if (batch->deadline_ns < engine->next_deadline_ns)
        engine->next_deadline_ns = batch->deadline_ns;
}

static void not_sent(hf_engine *engine, hf_batch *batch, hf_err err)
{
    if (err != HF_CONN)
        hf_outcome_end(engine, batch, batch->doubted ? HF_UNSURE : err, NULL,
                       hf_err_text(err));
    else if (batch->doubted)
        hf_batches_by_number(&engine->doubt, batch);
    else
        hf_inbox_put_back(&engine->inbox, batch);
}

/* False: the client takes nothing now. */
static bool send_batch(hf_engine *engine, hf_batch *batch, uint64_t now_ns)
{
    const uint64_t last = engine->number, before = batch->number;
    batch->engine = engine;
    if (batch->items == NULL && hf_batch_seal(batch, now_ns) != HF_OK) {
        hf_outcome_end(engine, batch, HF_NOMEM, NULL, hf_err_text(HF_NOMEM));
        return true;
    }
    if (!batch->doubted && !batch->numbered)
        batch->number = ++engine->number;
    register_queue(engine, batch->lane);
    size_t ms = REQUEST_MS + (engine->bytes_in_flight + batch->charge) / BYTES_PER_MS +
                (engine->jobs_in_flight + batch->n) / JOBS_PER_MS;
    hf_enqueue_args args = args_of(engine, batch, now_ns);
    hf_err err = hf_op_enqueue(engine->client, &batch->lane->queue, &args, batch->items,
                               batch->n, (uint32_t)ms, hf_outcome_on_answer, batch);
    if (err == HF_OK) {
        now_in_flight(engine, batch);
        return true;
    }
    engine->number = last;
    batch->number = before;
    not_sent(engine, batch, err);
    return err != HF_CONN;
}

/* The next batch to send, or NULL. */
static hf_batch *next_batch(hf_engine *engine, uint64_t now_ns, uint64_t *later_ns)
{
    if (engine->doubted > 0) {
        hf_batch *batch = engine->doubt.first;
        if (batch != NULL)
            hf_batches_remove(&engine->doubt, batch);
        return batch;
    }
    /* While Redis has enough to do, a batch gains more by growing than by waiting there.
     * Beside one request it has, unless the next is as large: then Redis finds work when
     * it has done the one, and those who wait for the other call again meanwhile. */
    size_t enough = engine->in_flight >= BUSY_AT ? SIZE_MAX : engine->jobs_in_flight;
    return hf_inbox_take(&engine->inbox, enough, GATHER_MS * HF_MS_NS, now_ns, later_ns);
}

static void on_timer(uv_timer_t *timer)
{
    hf_engine *engine = timer->data;
    uint64_t now_ns = hf_boot_ns();
    bool idle;
    engine->armed_ns = UINT64_MAX;
    if (now_ns >= engine->next_deadline_ns ||
        now_ns >= hf_inbox_look(&engine->inbox, &idle))
        hf_outcome_expire(engine, now_ns);
    hf_requests_pump(engine);
}

/* The loop's idea of now may be older than ours, and then the timer is early: it is
 * simply set again. */
static void arm(hf_engine *engine, uint64_t due_ns, uint64_t now_ns)
{
    if (due_ns == engine->armed_ns)
        return;
    engine->armed_ns = due_ns;
    if (due_ns == UINT64_MAX)
        (void)uv_timer_stop(&engine->timer);
    else
        (void)uv_timer_start(&engine->timer, on_timer,
                             (uint64_t)ms_between(now_ns, due_ns) + 1, 0);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Waiting would not put these right. */
static bool is_hopeless(hf_err err)
{
    return err == HF_AUTH || err == HF_UNSUPPORTED || err == HF_CONFIG;
}

void hf_requests_pump(hf_engine *engine)
{
    uint64_t now_ns = hf_boot_ns(), later_ns = UINT64_MAX;
    bool idle;
    if (engine->stage != HF_ENGINE_RUNS)
        return;
    bool may_send = !engine->clock_asked && hf_client_ready(engine->client);
    if (is_hopeless(hf_client_status(engine->client)))
        hf_outcome_fail_unsent(engine);
    while (may_send && now_ns >= engine->pause_until_ns && engine->in_flight < WINDOW &&
           engine->bytes_in_flight < BYTES_IN_FLIGHT) {
        hf_batch *batch = next_batch(engine, now_ns, &later_ns);
        if (batch == NULL)
            break;
        if (batch->deadline_ns <= now_ns && !batch->doubted)
            hf_outcome_unsent(engine, batch);
        else
            may_send = send_batch(engine, batch, now_ns);
    }
    uint64_t next_ns = hf_inbox_look(&engine->inbox, &idle);
    next_ns = earlier(next_ns, engine->next_deadline_ns);
    if (!engine->inbox.run->by_caller) /* else the call that began the batch sees to it */
        next_ns = earlier(next_ns, later_ns);
    if (now_ns < engine->pause_until_ns)
        next_ns = earlier(next_ns, engine->pause_until_ns);
    arm(engine, next_ns, now_ns);
    if (idle)
        hf_run_loop_wake(engine->run);
}
