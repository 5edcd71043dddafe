/* ending.c - how a worker ends.
 *
 * STOPPING claims nothing, gives back what has not started and its batons, and waits for
 * what runs. ENDING kills programs; when only C handlers are left that do not return,
 * their jobs are released as the last thing. */
#include "base/base.h"
#include "base/clock.h"
#include "worker/life.h"
#include "worker/queues.h"
#include "worker/report.h"
#include "worker/running.h"
#include "worker/shared.h"
#include "worker/verdicts.h"
#include "worker/waking.h"

enum { GIVE_UP_MS = 3000 };

static void begin_end(hf_worker *w);

/* ---- asked to stop ---- */

static void begin_stop(hf_worker *w)
{
    w->phase = HF_STOPPING;
    hf_queues_drop_timers(w);
    hf_check_give_back(w);
    hf_running_stop(w);
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
    if (w->held > hf_running_out(w))
        hf_report(w, HF_LOG_ERROR, "verdicts were not answered: their leases end", &field,
                  1);
    hf_end_take_down(w);
}

static void begin_end(hf_worker *w)
{
    w->phase = HF_ENDING;
    hf_running_kill(w);
    uv_timer_start(&w->phase_timer, on_give_up, GIVE_UP_MS, 0);
}

/* With nothing of its own under way on the blocking connection, no baton goes down with
 * it. */
static bool connections_idle(const hf_worker *w)
{
    if (!hf_client_ready(w->client))
        return true;
    return hf_wake_idle(w);
}

void hf_life_check(hf_worker *w)
{
    if (w->phase != HF_STOPPING && w->phase != HF_ENDING)
        return;
    if (w->phase == HF_ENDING && !w->shadows_sent && w->held == hf_running_out(w)) {
        w->shadows_sent = true;
        hf_running_abandon(w);
        hf_verdict_flush(w);
    }
    if (hf_queues_under_way(w))
        return; /* what a claim takes is released */
    bool all = w->held == 0 || (w->phase == HF_ENDING && w->held == hf_running_out(w));
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
    uv_handle_t *handles[] = {
        (uv_handle_t *)&w->turn,
        (uv_handle_t *)&w->tick,
        (uv_handle_t *)&w->phase_timer,
        (uv_handle_t *)&w->retry_timer,
    };
    w->client = w->wake_client = NULL;
    hf_client_close(client, NULL, NULL);
    hf_client_close(wake_client, NULL, NULL);
    hf_running_close(w);
    for (size_t i = 0; i < HF_COUNT(handles); i++)
        close_handle(handles[i]);
    hf_wake_close(w);
    hf_beat_close(w);
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
    w->unreturned = hf_running_out(w);
    uv_timer_start(&w->phase_timer, on_gone_late, w->server.request_timeout_ms + 1, 0);
    if (!told || hf_op_heartbeat(w->client, w->ns, w->id, NULL, 0, on_gone, w) != HF_OK)
        hf_end_close_all(w);
}

/* What could not be settled any more: its leases end by themselves. */
void hf_end_forget_held(hf_worker *w)
{
    hf_running_forget(w);
    hf_verdict_forget(w);
}

void hf_life_free(hf_worker *w)
{
    if (!w->ran)
        return;
    hf_running_join(w);
    hf_watchdog_stop(w->watchdog);
    atomic_store(&w->async_ready, false);
    close_handle((uv_handle_t *)&w->async);
    uv_run(&w->loop, UV_RUN_DEFAULT);
    HF_ASSERT(uv_loop_close(&w->loop) == 0);
}
