/* ending.c - how a worker ends.
 *
 * STOPPING claims nothing, gives back what has not started and its batons, and waits for
 * what runs. ENDING kills programs; when only C handlers are left that do not return,
 * their jobs are released as the last thing. */
#include "base/base.h"
#include "base/clock.h"
#include "worker/core.h"
#include "worker/pool.h"

enum { GIVE_UP_MS = 3000 };

static void begin_end(hf_worker *w);

/* ---- asked to stop ---- */

static void begin_stop(hf_worker *w)
{
    w->phase = HF_STOPPING;
    for (size_t i = 0; i < w->n_served; i++)
        w->served[i]->timer_ms = 0;
    hf_check_give_back(w);
    hf_dispatch_release_waiting(w);
    hf_dispatch_struck(w);
    hf_dispatch_ask_all(w);
}

static void on_shutdown_over(uv_timer_t *timer)
{
    begin_end(timer->data);
}

void hf_end_stops(hf_worker *w, unsigned stops)
{
    bool again = w->stops_seen > 0 || stops > 1;
    w->stops_seen += stops;
    if (w->phase == HF_STARTING) {
        w->result = HF_OK;
        hf_end_take_down(w);
        return;
    }
    if (w->phase == HF_SERVING) {
        begin_stop(w);
        uv_timer_start(&w->phase_timer, on_shutdown_over, w->opts.shutdown_timeout_ms, 0);
    }
    if (w->phase == HF_STOPPING && (again || w->opts.shutdown_timeout_ms == 0))
        begin_end(w);
}

/* ---- the end ---- */

static void on_give_up(uv_timer_t *timer)
{
    hf_worker *w = timer->data;
    hf_log_field field = {.key = "jobs", .number = (int64_t)w->held};
    if (w->held > w->c_out)
        hf_report(w, HF_LOG_ERROR, "verdicts were not answered: their leases end", &field,
                  1);
    hf_end_take_down(w);
}

static void begin_end(hf_worker *w)
{
    w->phase = HF_ENDING;
    hf_dispatch_kill(w);
    uv_timer_start(&w->phase_timer, on_give_up, GIVE_UP_MS, 0);
}

/* With nothing of its own under way on the blocking connection, no baton goes down with
 * it. */
static bool connections_idle(const hf_worker *w)
{
    if (!hf_client_ready(w->client))
        return true;
    return !w->checking && !w->give_back &&
           (!w->blocked || !hf_client_ready(w->wake_client));
}

void hf_life_check(hf_worker *w)
{
    if (w->phase != HF_STOPPING && w->phase != HF_ENDING)
        return;
    if (w->phase == HF_ENDING && !w->shadows_sent && w->held == w->c_out) {
        w->shadows_sent = true;
        hf_dispatch_abandon(w);
        hf_verdict_flush(w);
    }
    if (hf_queues_under_way(w))
        return; /* what a claim takes is released */
    bool all = w->held == 0 || (w->phase == HF_ENDING && w->held == w->c_out);
    if (all && connections_idle(w))
        hf_end_take_down(w);
}

static void close_handle(uv_handle_t *handle)
{
    if (!uv_is_closing(handle))
        uv_close(handle, NULL);
}

/* Everything of this loop is closed but `async`, which other threads may use until the
 * worker is freed; uv_run() comes back when that is done. What is answered by it sees
 * phase ENDED. */
void hf_end_close_all(hf_worker *w)
{
    hf_client *client = w->client, *wake_client = w->wake_client;
    hf_programs *programs = w->programs;
    uv_handle_t *handles[] = {
        (uv_handle_t *)&w->turn,        (uv_handle_t *)&w->tick,
        (uv_handle_t *)&w->baton_timer, (uv_handle_t *)&w->beat,
        (uv_handle_t *)&w->look,        (uv_handle_t *)&w->phase_timer,
        (uv_handle_t *)&w->retry_timer,
    };
    w->client = w->wake_client = NULL;
    w->programs = NULL;
    hf_client_close(client, NULL, NULL);
    hf_client_close(wake_client, NULL, NULL);
    hf_programs_close(programs, NULL, NULL);
    for (size_t i = 0; i < HF_COUNT(handles); i++)
        close_handle(handles[i]);
    uv_unref((uv_handle_t *)&w->async);
}

static void on_gone(const hf_answer *answer, void *arg)
{
    (void)answer;
    hf_end_close_all(arg);
}

static void on_gone_late(uv_timer_t *timer)
{
    hf_end_close_all(timer->data);
}

/* Signs off, at most for as long as one request may take. */
void hf_end_take_down(hf_worker *w)
{
    if (w->phase == HF_ENDED)
        return;
    bool told = w->phase != HF_STARTING && hf_client_ready(w->client);
    w->phase = HF_ENDED;
    w->unreturned = w->c_out;
    uv_timer_start(&w->phase_timer, on_gone_late, w->opts.request_timeout_ms + 1, 0);
    if (!told || hf_op_heartbeat(w->client, w->ns, w->id, NULL, 0, on_gone, w) != HF_OK)
        hf_end_close_all(w);
}

static void forget(hf_worker *w, hf_run_list *list)
{
    hf_run *run;
    while ((run = hf_run_pop(list)) != NULL) {
        if (run->lease != NULL)
            hf_watchdog_drop(w->watchdog, run->lease);
        hf_run_free(run);
    }
}

/* What could not be settled any more: its leases end by themselves. */
void hf_end_forget_held(hf_worker *w)
{
    hf_run_list *unsettled[] = {&w->held_back, &w->waiting, &w->struck};
    for (size_t i = 0; i < HF_COUNT(unsettled); i++)
        forget(w, unsettled[i]);
    for (size_t i = 0; i < w->n_slots; i++)
        for (hf_verdict_op op = HF_OP_COMPLETE; op <= HF_OP_BURY; op++) {
            forget(w, &w->slots[i].fresh[op]);
            forget(w, &w->slots[i].resent[op]);
        }
}

void hf_life_free(hf_worker *w)
{
    hf_run_list left = {.n = 0};
    hf_run *run;
    if (!w->ran)
        return;
    if (w->pool != NULL) {
        hf_pool_join(w->pool);
        hf_pool_collect(w->pool, &left);
    }
    while ((run = hf_run_pop(&left)) != NULL) {
        hf_watchdog_drop(w->watchdog, run->lease);
        hf_run_free(run);
    }
    hf_watchdog_stop(w->watchdog);
    hf_pool_free(w->pool);
    hf_lead_close(w);
    atomic_store(&w->async_ready, false);
    close_handle((uv_handle_t *)&w->async);
    uv_run(&w->loop, UV_RUN_DEFAULT);
    HF_ASSERT(uv_loop_close(&w->loop) == 0);
}
