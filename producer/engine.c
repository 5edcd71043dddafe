/* engine.c - the life of the engine: its connection, its clock, its end.
 *
 *   RUNS --(closed, all answered)--> FORGETS --(if it may)--> CLOSES: client, timer, wake
 *
 * The end is only ever taken forward from submit(), never from inside a callback of the
 * client, so that nothing is torn down under the feet of somebody who still stands on it.
 */
#include "producer/engine.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"

enum { FORGETS_AT_ONCE = 64 };

/* ---- the end ---- */

static void on_handle_closed(uv_handle_t *handle)
{
    hf_engine *engine = handle->data;
    if (--engine->handles == 0)
        engine->on_end(engine->arg);
}

static void on_client_closed(void *arg)
{
    hf_engine *engine = arg;
    hf_run_loop_close_wakeup(engine->run, on_handle_closed);
    uv_close((uv_handle_t *)&engine->timer, on_handle_closed);
}

static void close_client(hf_engine *engine)
{
    engine->stage = HF_ENGINE_CLOSES;
    hf_client_close(engine->client, on_client_closed, engine);
}

static void on_forgotten(const hf_answer *answer, void *arg)
{
    hf_engine *engine = arg;
    (void)answer; /* what is not taken away ends by itself */
    engine->forgets--;
    hf_run_loop_wake(engine->run);
}

/* The next lane that was used, or NULL. A call that came too late may still add others.
 */
static hf_lane *next_lane(hf_engine *engine)
{
    hf_lane *found = NULL;
    hf_run_loop_lock(engine->run);
    while (found == NULL && (engine->lane != NULL || engine->bucket < HF_LANE_BUCKETS)) {
        hf_lane *lane = engine->lane;
        if (lane != NULL && lane->used)
            found = lane;
        engine->lane =
            lane != NULL ? lane->next : engine->inbox.buckets[engine->bucket++];
    }
    hf_run_loop_unlock(engine->run);
    return found;
}

/* What was sent and stayed unanswered may still be on its way to Redis, and must then be
 * known as executed: so it is forgotten only when there is no such thing. */
static bool may_forget(const hf_engine *engine)
{
    return engine->remember_ms == 0 && !engine->tainted &&
           hf_client_ready(engine->client);
}

static void forget(hf_engine *engine)
{
    hf_lane *lane = NULL;
    while (may_forget(engine) && engine->forgets < FORGETS_AT_ONCE &&
           (lane = next_lane(engine)) != NULL) {
        if (hf_op_forget(engine->client, &lane->queue, engine->id, on_forgotten,
                         engine) == HF_OK)
            engine->forgets++;
    }
    if (engine->forgets == 0)
        close_client(engine);
}

/* ---- what it is called for ---- */

static void submit(void *arg)
{
    hf_engine *engine = arg;
    bool idle;
    if (engine->stage == HF_ENGINE_RUNS)
        hf_requests_pump(engine);
    (void)hf_inbox_look(&engine->inbox, &idle);
    if (engine->stage == HF_ENGINE_RUNS && idle) {
        engine->stage = HF_ENGINE_FORGETS;
        engine->armed_ns = UINT64_MAX;
        (void)uv_timer_stop(&engine->timer);
    }
    if (engine->stage == HF_ENGINE_FORGETS)
        forget(engine);
}

static void flush(void *arg)
{
    hf_engine *engine = arg;
    if (engine->stage == HF_ENGINE_RUNS)
        hf_redis_flush(engine->client);
}

/* Every request is a script that does not wait. */
static bool expects(void *arg)
{
    (void)arg;
    return true;
}

const hf_run_hooks hf_engine_hooks = {submit, flush, expects};

static void on_time(const hf_answer *answer, void *arg)
{
    hf_engine *engine = arg;
    int64_t now_ms;
    engine->clock_asked = false;
    if (hf_time_read(answer, &now_ms) == HF_OK) {
        engine->clock_ms = now_ms;
        engine->clock_ns = hf_boot_ns();
    }
    hf_requests_pump(engine);
}

/* Redis's time belongs to a connection: the next one may lead to another server. It is
 * asked for before anything is sent, so that every request can carry its not_after. */
static void on_ready(hf_engine *engine)
{
    const char *run_id = hf_client_server(engine->client)->run_id;
    if (engine->server_lives == 0 || strcmp(run_id, engine->run_id) != 0) {
        (void)snprintf(engine->run_id, sizeof engine->run_id, "%s", run_id);
        engine->server_lives++;
    }
    engine->clock_ms = 0;
    engine->clock_asked = hf_redis_time(engine->client, on_time, engine) == HF_OK;
}

static void on_event(hf_client *client, hf_err err, const char *detail, void *arg)
{
    hf_engine *engine = arg;
    (void)client;
    (void)detail;
    if (engine->stage != HF_ENGINE_RUNS) {
        hf_run_loop_wake(engine->run);
        return;
    }
    if (err == HF_OK)
        on_ready(engine);
    hf_requests_pump(engine);
}

hf_err hf_engine_start(hf_engine *engine, const hf_producer_opts *opts,
                       char detail[HF_DETAIL_SIZE])
{
    engine->armed_ns = engine->next_deadline_ns = UINT64_MAX;
    engine->longest_ns = opts->deadline_ms * HF_MS_NS;
    engine->remember_ms = opts->remember_ms;
    hf_err err = hf_random_bytes(&engine->rng.state, sizeof engine->rng.state);
    if (err != HF_OK)
        return err;
    err = hf_client_open(&engine->client,
                         &(hf_client_opts){.loop = engine->run->uv,
                                           .server = *opts->server,
                                           .on_event = on_event,
                                           .arg = engine},
                         detail);
    if (err != HF_OK)
        return err;
    int made = uv_timer_init(engine->run->uv, &engine->timer);
    HF_ASSERT(made == 0);
    engine->timer.data = engine;
    engine->handles = 2;
    return HF_OK;
}
