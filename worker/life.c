/* life.c - a worker's start, its turns, its end.
 *
 *   STARTING -> SERVING -> STOPPING -> ENDING -> ENDED
 *       \_ cannot _/          |  stop again, or shutdown_timeout: programs are killed
 *        be used              '- everything returned: straight to ENDED
 *
 * STOPPING claims nothing, gives back what has not started and its batons, and waits for
 * what runs. ENDING kills programs; when only C handlers are left that do not return,
 * their jobs are released as the last thing. */
#include "worker/life.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/detail.h"
#include "worker/heartbeat.h"
#include "worker/leases.h"
#include "worker/node/site.h"
#include "worker/node/sites.h"
#include "worker/offered.h"
#include "worker/outbox.h"
#include "worker/past.h"
#include "worker/queues/queues.h"
#include "worker/register.h"
#include "worker/reload.h"
#include "worker/report.h"
#include "worker/routes.h"
#include "worker/runner/runner.h"
#include "worker/runs.h"
#include "worker/source/check.h"
#include "worker/source/claim.h"
#include "worker/source/wake.h"
#include "worker/worker.h"

enum {
    GIVE_UP_MS = 3000,
    START_MS = 5000, /* for Redis, at least */
    TICK_MS = 50,
    IDLE_STOP_MS = 300, /* for answers that an idle worker can do without */
    SIGN_OFF_MS = 500
};

static void begin_end(hf_worker *w);
static void take_down(hf_worker *w);

static void set_phase(hf_worker *w, hf_phase phase)
{
    w->phase = phase;
    w->serving = phase == HF_SERVING && !w->quiet;
}

static void set_quiet(hf_worker *w, bool quiet)
{
    w->quiet = quiet;
    w->serving = w->phase == HF_SERVING && !quiet;
}

/* ---- asked to stop ---- */

static void begin_stop(hf_worker *w)
{
    set_phase(w, HF_STOPPING);
    w->stopping_ns = hf_boot_ns();
    hf_queues_drop_timers(w);
    hf_check_give_back(w);
    hf_runner_stop(w);
}

static void on_shutdown_over(uv_timer_t *timer)
{
    begin_end(timer->data);
}

static void on_stops(hf_worker *w, unsigned stops)
{
    bool again = w->stops_seen > 0 || stops > 1;
    w->stops_seen += stops;
    if (w->phase == HF_STARTING) {
        w->result = HF_OK;
        take_down(w);
        return;
    }
    if (w->phase == HF_SERVING) {
        begin_stop(w);
        uv_timer_start(&w->phase_timer, on_shutdown_over, w->opts.shutdown_timeout_ms, 0);
    }
    if (w->phase == HF_STOPPING && (again || w->opts.shutdown_timeout_ms == 0))
        begin_end(w);
}

/* A pool has had its tries. */
static void on_start_failed(hf_worker *w)
{
    w->start_failed = false;
    w->result = HF_CONFIG;
    if (w->phase == HF_STARTING)
        take_down(w);
    else
        on_stops(w, 1);
}

/* ---- the end ---- */

static void on_give_up(uv_timer_t *timer)
{
    hf_worker *w = timer->data;
    hf_log_field field = {.key = "jobs", .number = (int64_t)w->in_hand};
    if (w->in_hand > hf_runner_out(w))
        hf_report(w, HF_LOG_ERROR, "verdicts were not answered: their leases end", &field,
                  1);
    take_down(w);
}

static void begin_end(hf_worker *w)
{
    set_phase(w, HF_ENDING);
    hf_runner_kill(w);
    uv_timer_start(&w->phase_timer, on_give_up, GIVE_UP_MS, 0);
}

/* An idle worker has nothing to lose: it does not wait for a Redis that is away or stands
 * still. A lost baton is made anew, and jobs of a claim whose answer was lost go back
 * when their leases end. */
static bool waited(const hf_worker *w)
{
    return hf_boot_ns() - w->stopping_ns >= IDLE_STOP_MS * HF_MS_NS;
}

static void check_end(hf_worker *w)
{
    if (w->phase != HF_STOPPING && w->phase != HF_ENDING)
        return;
    if (w->phase == HF_ENDING && !w->stand_ins_sent && w->in_hand == hf_runner_out(w)) {
        w->stand_ins_sent = true;
        hf_runner_abandon(w);
        hf_outbox_flush(w);
    }
    if (hf_queues_under_way(w, !waited(w)))
        return; /* claimed jobs are released */
    bool all =
        w->in_hand == 0 || (w->phase == HF_ENDING && w->in_hand == hf_runner_out(w));
    bool tidy = w->phase == HF_ENDING || hf_runner_is_tidy(w);
    if (all && tidy && (hf_wake_idle(w) || waited(w)))
        take_down(w);
    else if (w->phase == HF_ENDING && !hf_sites_ready(w) &&
             w->in_hand == w->decided + hf_runner_out(w))
        on_give_up(&w->phase_timer); /* no Redis takes the verdicts */
}

static void close_handle(uv_handle_t *handle)
{
    if (!uv_is_closing(handle))
        uv_close(handle, NULL);
}

/* Closes everything on this loop except `async`, which other threads may use until the
 * worker is freed; uv_run() then returns. Callbacks of the closing see phase ENDED. */
static void close_all(hf_worker *w)
{
    if (uv_is_closing((uv_handle_t *)&w->turn))
        return;
    uv_handle_t *handles[] = {
        (uv_handle_t *)&w->turn,   (uv_handle_t *)&w->late_turn,
        (uv_handle_t *)&w->tick,   (uv_handle_t *)&w->phase_timer,
        (uv_handle_t *)&w->gather,
    };
    hf_sites_close(w);
    hf_runner_close(w);
    for (size_t i = 0; i < HF_COUNT(handles); i++)
        close_handle(handles[i]);
    hf_wake_close(w);
    hf_heartbeat_close(w);
    hf_past_close(w);
    hf_runs_close(w);
    uv_unref((uv_handle_t *)&w->async);
}

static void on_gone(const hf_answer *answer, void *arg)
{
    hf_worker *w = arg;
    (void)answer;
    if (--w->goodbyes == 0)
        close_all(w);
}

static void on_gone_late(uv_timer_t *timer)
{
    close_all(timer->data);
}

/* Signs off, if its Redis answers in time: from the list of workers, and from each queue,
 * with the history of its last minute. */
static void take_down(hf_worker *w)
{
    if (w->phase == HF_ENDED)
        return;
    const hf_site *site = w->registry;
    bool was_up = w->phase != HF_STARTING, can_ask = was_up && hf_site_ready(site);
    set_phase(w, HF_ENDED);
    w->unreturned = hf_runner_out(w);
    uv_timer_start(&w->phase_timer, on_gone_late, SIGN_OFF_MS, 0);
    w->goodbyes = can_ask ? hf_register_goodbye(w, on_gone, w) : 0;
    if (can_ask &&
        hf_op_heartbeat(site->base.client, w->ns, w->id, NULL, 0, on_gone, w) == HF_OK)
        w->goodbyes++;
    if (was_up) {
        w->goodbyes += hf_past_goodbye(w, on_gone, w);
        w->goodbyes += hf_runs_goodbye(w, on_gone, w);
    }
    if (w->goodbyes == 0)
        close_all(w);
}

/* The jobs without a final answer: their leases expire. */
static void forget_jobs(hf_worker *w)
{
    hf_runner_forget(w);
    hf_outbox_forget(w);
}

void hf_life_free(hf_worker *w)
{
    if (!w->ran)
        return;
    hf_runner_join(w);
    hf_watchdog_stop(w->watchdog);
    atomic_store(&w->async_ready, false);
    close_handle((uv_handle_t *)&w->async);
    uv_run(&w->loop, UV_RUN_DEFAULT);
    HF_ASSERT(uv_loop_close(&w->loop) == 0);
    hf_sites_free(w);
}

/* ---- turns ---- */

/* While something is held this comes every TICK_MS. A gap of a third of a lease means
 * that the process was stopped: its jobs may run elsewhere by now, and jobs that it takes
 * over next, even its own, do not count as crashes. */
static void notice_pause(hf_worker *w)
{
    uint64_t now = hf_boot_ns(), third_ns = w->opts.lease_ms * HF_MS_NS / 3;
    if (w->tick_ns != 0 && now - w->tick_ns > third_ns + TICK_MS * HF_MS_NS) {
        hf_log_field field = {.key = "for_ms",
                              .number = (int64_t)((now - w->tick_ns) / HF_MS_NS)};
        hf_report(w, HF_LOG_WARN, "this process was stopped: leases are verified", &field,
                  1);
        for (hf_site *site = NULL; (site = hf_sites_next(w, site)) != NULL;)
            hf_site_count_no_crash(site);
        hf_watchdog_verify(w->watchdog);
    }
    w->tick_ns = now;
}

static void on_tick(uv_timer_t *timer)
{
    hf_worker *w = timer->data;
    notice_pause(w);
    hf_runner_tick(w);
    w->turn_due = true;
}

static void on_gathered(uv_timer_t *timer)
{
    hf_worker *w = timer->data;
    w->turn_due = true;
}

static void tell_runs(hf_worker *w)
{
    if (!hf_runs_due(w))
        return;
    hf_runner_started(w, hf_runs_goes_on, NULL);
    hf_runs_send(w);
}

/* Sends what can be sent, starts what can be started: after every event. */
static void turn(hf_worker *w)
{
    w->turn_due = false;
    if (w->phase == HF_ENDED)
        return;
    if (w->start_failed)
        on_start_failed(w);
    if (w->burst_is_over) {
        w->burst_is_over = false;
        atomic_fetch_add(&w->stops, 1);
        uv_async_send(&w->async);
    }
    hf_routes_turn(w);
    hf_offered_turn(w);
    hf_register_turn(w);
    for (hf_site *site = NULL;
         w->phase == HF_SERVING && (site = hf_sites_next(w, site)) != NULL;)
        if (hf_server_now(site->base.redis) == 0)
            hf_check_send(site);
    hf_runner_dispatch(w);
    if (hf_runner_must_return(w))
        return; /* the rest comes when its handler was called */
    bool sent = hf_outbox_flush(w);
    if (hf_outbox_gathers(w) && !uv_is_active((uv_handle_t *)&w->gather))
        uv_timer_start(&w->gather, on_gathered, 1, 0);
    hf_claim_lost(w);
    if ((!sent || !hf_claim_can_wait(w)) && hf_claim_pump(w))
        w->claimed = true;
    tell_runs(w);
    hf_wake_pump(w);
    hf_wake_timers(w);
    bool ticks = w->in_hand > 0 || w->phase == HF_STOPPING;
    if (ticks && !uv_is_active((uv_handle_t *)&w->tick)) {
        w->tick_ns = 0;
        uv_timer_start(&w->tick, on_tick, TICK_MS, TICK_MS);
    } else if (!ticks) {
        uv_timer_stop(&w->tick);
    }
    hf_heartbeat_turn(w);
    check_end(w);
    hf_runner_turned(w, w->in_hand == 0 && hf_wake_blocks(w));
}

static void on_turn(uv_check_t *check)
{
    hf_worker *w = check->data;
    hf_health_turns(&w->health, uv_now(&w->loop), 0);
    w->claimed = false;
    turn(w);
}

/* The loop is about to sleep, and a timer has changed something since the last turn, or
 * that turn itself has. All that was asked for leaves together, and history with no
 * claim. */
static void on_late_turn(uv_prepare_t *prepare)
{
    hf_worker *w = prepare->data;
    while (w->turn_due)
        turn(w);
    hf_past_turn(w, w->claimed);
    hf_health_turns(&w->health, uv_now(&w->loop), uv_backend_timeout(&w->loop));
}

/* ---- the start ---- */

static void started(hf_worker *w)
{
    if (w->phase != HF_STARTING)
        return;
    set_phase(w, HF_SERVING);
    uv_timer_stop(&w->phase_timer);
    hf_heartbeat_start(w);
    hf_wake_start(w);
    hf_report_text(w, HF_LOG_INFO, "serving", "worker", w->id);
}

static void refuse(hf_worker *w, hf_err err, const char *detail)
{
    w->result = err;
    snprintf(w->detail, sizeof w->detail, "%s", detail);
    take_down(w);
}

/* ---- what the sites tell ---- */

/* After each reconnect every queue is claimed once, and no crash is counted for a lease:
 * Redis was away, not the holders. */
static void serve(hf_site *site)
{
    hf_worker *w = site->worker;
    hf_site_note_life(site);
    hf_site_report_lacks(site);
    for (size_t i = 0; i < hf_queues_count(w); i++)
        if (hf_queues_at(w, i)->site == site)
            hf_queues_at(w, i)->registration.done = false; /* it may be another Redis */
    for (hf_site *at = NULL; (at = hf_sites_next(w, at)) != NULL;)
        if (at == site || site == w->registry)
            hf_register_site(at);
    started(w);
    hf_queues_recheck(site);
    hf_claim_say_alive(w);
    hf_check_send(site);
    w->heartbeat_due = true; /* it may be a Redis that never heard of us */
    w->turn_due = true;
}

static void ask_permission(hf_site *site);

/* Another refusal will be met again by the claims, which know what to do about it. */
static void on_permitted(const hf_answer *answer, void *arg)
{
    hf_site *site = arg;
    hf_worker *w = site->worker;
    if (w->phase != HF_STARTING || answer->err == HF_UNSURE)
        return;
    if (answer->err == HF_NOSCRIPT)
        ask_permission(site);
    else if (answer->err == HF_AUTH)
        refuse(w, HF_AUTH, answer->detail);
    else
        serve(site);
}

/* The worker starts where it may use its queues. */
static void ask_permission(hf_site *site)
{
    const hf_worker *w = site->worker;
    const hf_queue *queue = NULL;
    for (size_t i = 0; i < hf_queues_count(w) && queue == NULL; i++)
        if (hf_queues_at(w, i)->site == site)
            queue = &hf_queues_at(w, i)->queue;
    if (queue == NULL ||
        hf_op_permitted(site->base.client, queue, on_permitted, site) != HF_OK)
        serve(site);
}

static void on_up(hf_site *site)
{
    if (site->worker->phase == HF_STARTING)
        ask_permission(site);
    else
        serve(site);
}

static void on_clock_back(hf_site *site)
{
    hf_check_at(site, hf_boot_ns());
}

static const hf_site_hooks hooks = {
    .on_up = on_up,
    .on_other_data = hf_check_other_data,
    .on_clock_back = on_clock_back,
    .on_unusable = refuse,
    .on_watch = hf_leases_on_watch,
    .is_needed = hf_routes_need,
};

/* ---- the start ---- */

static void on_start_over(uv_timer_t *timer)
{
    hf_worker *w = timer->data;
    char why[HF_DETAIL_SIZE];
    hf_err err = hf_cluster_status(w->nodes.cluster, why);
    for (hf_site *site = NULL; err == HF_OK && (site = hf_sites_next(w, site)) != NULL;) {
        err = hf_client_status(site->base.client);
        snprintf(why, sizeof why, "%s", hf_client_detail(site->base.client));
    }
    refuse(w, err == HF_OK ? HF_CONN : err, why);
}

/* ---- from other threads ---- */

static void be_quiet(hf_worker *w)
{
    set_quiet(w, true);
    hf_report_text(w, HF_LOG_INFO, "quiet: nothing more is claimed", NULL, NULL);
    hf_queues_drop_timers(w);
    hf_check_give_back(w);
}

/* CONT comes after many a STOP and TERM as well. */
static void resume(hf_worker *w)
{
    if (w->quiet && w->phase == HF_SERVING)
        hf_report_text(w, HF_LOG_INFO, "claiming again", NULL, NULL);
    set_quiet(w, false);
    for (hf_site *site = NULL; (site = hf_sites_next(w, site)) != NULL;)
        hf_queues_recheck(site);
}

static void on_async(uv_async_t *async)
{
    hf_worker *w = async->data;
    unsigned stops = atomic_load(&w->stops) - w->stops_seen;
    unsigned orders = atomic_load(&w->orders);
    if (w->phase == HF_ENDED)
        return;
    hf_runner_returned(w);
    for (hf_site *site = NULL; (site = hf_sites_next(w, site)) != NULL;) {
        hf_site_clock_tell(site);
        hf_leases_report(site);
    }
    hf_runner_events(w);
    hf_reload_apply(w);
    if (orders != w->orders_seen) {
        w->orders_seen = orders;
        if (atomic_load(&w->quiet_wanted))
            be_quiet(w);
        else
            resume(w);
    }
    if (stops > 0)
        on_stops(w, stops);
}

static void on_returned(void *arg)
{
    hf_worker *w = arg;
    if (atomic_load(&w->async_ready))
        uv_async_send(&w->async);
}

/* The job's end leaves now, and the worker blocks on its queues again. In the next round
 * of the loop that would be later by the time of its system calls. */
static void on_returned_here(hf_worker *w)
{
    hf_runner_returned(w);
    turn(w);
}

/* ---- run ---- */

static hf_err open_handles(hf_worker *w)
{
    uv_timer_t *timers[] = {&w->tick, &w->phase_timer, &w->gather};
    for (size_t i = 0; i < HF_COUNT(timers); i++) {
        uv_timer_init(&w->loop, timers[i]);
        timers[i]->data = w;
    }
    hf_heartbeat_open(w);
    hf_past_open(w);
    hf_runs_open(w);
    hf_check_open(w);
    uv_check_init(&w->loop, &w->turn);
    uv_prepare_init(&w->loop, &w->late_turn);
    w->turn.data = w->late_turn.data = w;
    w->async.data = w;
    if (uv_async_init(&w->loop, &w->async, on_async) != 0)
        return HF_SYSTEM;
    return hf_wake_open(w);
}

/* The minder before any thread, then the threads, then the connections. */
static hf_err open_all(hf_worker *w)
{
    hf_err err = open_handles(w);
    if (err == HF_OK)
        err = hf_sites_open(w);
    if (err == HF_OK)
        err = hf_queues_place(w);
    if (err == HF_OK)
        err = hf_runner_start(w, on_returned, on_returned_here);
    if (err == HF_OK)
        err = hf_leases_start(w);
    if (err == HF_OK)
        err = hf_wake_connect(w);
    return err;
}

/* A long connect_timeout is one try; of a short one there are several. */
static uint32_t start_ms(const hf_worker *w)
{
    uint32_t connect_ms = w->server.connect_timeout_ms;
    return connect_ms > START_MS ? connect_ms : START_MS;
}

hf_err hf_worker_run(hf_worker *w, char detail[HF_DETAIL_SIZE])
{
    if (w->ran || w->n_handlers + w->n_pools == 0)
        return hf_say_expected(detail, "a new worker with a handler",
                               w->ran ? "one that has run" : NULL);
    if (uv_loop_init(&w->loop) != 0) {
        if (detail != NULL)
            snprintf(detail, HF_DETAIL_SIZE, "%s", hf_err_text(HF_SYSTEM));
        return HF_SYSTEM;
    }
    w->ran = true;
    w->hooks = &hooks;
    set_phase(w, HF_STARTING);
    w->result = open_all(w);
    atomic_store(&w->async_ready, w->result == HF_OK);
    if (w->result != HF_OK) {
        set_phase(w, HF_ENDED);
        close_all(w);
    } else {
        uv_check_start(&w->turn, on_turn);
        uv_prepare_start(&w->late_turn, on_late_turn);
        uv_timer_start(&w->phase_timer, on_start_over, start_ms(w), 0);
        uv_async_send(&w->async); /* it may have been stopped before */
    }
    hf_health_turns(&w->health, uv_now(&w->loop), 0);
    hf_runner_loop(w);
    atomic_store(&w->health.due_ms, 0);
    forget_jobs(w);
    if (detail != NULL)
        snprintf(detail, HF_DETAIL_SIZE, "%s", w->detail);
    return w->result;
}
