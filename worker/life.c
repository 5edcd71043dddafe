/* life.c - a worker's start, its turns, and its end.
 *
 *   STARTING -> SERVING -> STOPPING -> ENDING -> ENDED
 *       \_ cannot _/          |  stop again, or shutdown_timeout: programs are killed
 *        be used              '- everything returned: straight to ENDED
 *
 * STOPPING claims nothing, gives back what has not started and its batons, and waits for
 * what runs. ENDING kills programs; when only C handlers are left that do not return,
 * their jobs are released as the last thing. */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "worker/core.h"
#include "worker/pool.h"

enum { GIVE_UP_MS = 3000, NOT_NOW_MS = 100 };

static void begin_end(hf_worker *w);
static void take_down(hf_worker *w);

bool hf_life_serving(const hf_worker *w)
{
    return w->phase == HF_SERVING && !w->quiet && hf_clock_now(w) != 0;
}

/* ---- turns ---- */

static void on_pause_over(uv_timer_t *timer)
{
    hf_worker *w = timer->data;
    w->pause_until_ns = 0;
    hf_life_turn(w);
}

void hf_life_pause(hf_worker *w, uint32_t ms)
{
    if (w->phase == HF_ENDED || w->pause_until_ns != 0)
        return;
    w->pause_until_ns = hf_boot_ns() + ms * HF_MS_NS;
    uv_update_time(&w->loop);
    uv_timer_start(&w->retry_timer, on_pause_over, ms, 0);
}

/* A refusal that lasts is told once, not with every try. */
void hf_life_refused(hf_worker *w, hf_err err, const char *detail)
{
    if (err == HF_AUTH && w->phase == HF_SERVING && hf_clock_now(w) == 0) {
        w->result = err;
        snprintf(w->detail, sizeof w->detail, "%s", detail);
        take_down(w);
        return;
    }
    if (err != w->refused && err != HF_LATE)
        hf_report_text(w, HF_LOG_WARN, "Redis refuses to give jobs", "error", detail);
    w->refused = err;
    hf_life_pause(w, NOT_NOW_MS);
}

/* While something is held this comes every HF_TICK_MS. A gap of a third of a lease means
 * that the process stood still: what it held may have passed on, and what it now takes
 * over, its own jobs among it, was left by no crash. */
static void notice_pause(hf_worker *w)
{
    uint64_t now = hf_boot_ns(), third_ns = w->opts.lease_ms * HF_MS_NS / 3;
    if (w->tick_ns != 0 && now - w->tick_ns > third_ns + HF_TICK_MS * HF_MS_NS) {
        hf_log_field field = {.key = "for_ms",
                              .number = (int64_t)((now - w->tick_ns) / HF_MS_NS)};
        hf_report(w, HF_LOG_WARN, "this process stood still: leases are verified", &field,
                  1);
        w->forgive_until_ns = now + w->opts.lease_ms * HF_MS_NS;
        hf_watchdog_verify(w->watchdog);
    }
    w->tick_ns = now;
}

static void on_tick(uv_timer_t *timer)
{
    hf_worker *w = timer->data;
    notice_pause(w);
    hf_dispatch_tick(w);
    hf_life_turn(w);
}

void hf_life_turn(hf_worker *w)
{
    if (w->phase == HF_ENDED)
        return;
    if (w->phase == HF_SERVING && hf_clock_now(w) == 0)
        hf_wake_check(w);
    hf_dispatch(w);
    hf_verdict_flush(w);
    hf_claim_lost(w);
    hf_claim_pump(w);
    hf_wake_pump(w);
    hf_wake_timers(w);
    if (w->held > 0 && !uv_is_active((uv_handle_t *)&w->tick)) {
        w->tick_ns = 0;
        uv_timer_start(&w->tick, on_tick, HF_TICK_MS, HF_TICK_MS);
    } else if (w->held == 0) {
        uv_timer_stop(&w->tick);
    }
    hf_life_check(w);
}

static void on_turn(uv_check_t *check)
{
    hf_life_turn(check->data);
}

static void on_beat_timer(uv_timer_t *timer)
{
    hf_wake_beat(timer->data);
}

/* ---- from other threads ---- */

static void begin_stop(hf_worker *w)
{
    w->phase = HF_STOPPING;
    for (size_t i = 0; i < w->n_served; i++)
        w->served[i].timer_ms = 0;
    hf_wake_give_back(w);
    hf_dispatch_release_waiting(w);
    hf_dispatch_struck(w);
    hf_dispatch_ask_all(w);
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

static void on_async(uv_async_t *async)
{
    hf_worker *w = async->data;
    unsigned stops = atomic_load(&w->stops) - w->stops_seen;
    unsigned quiets = atomic_load(&w->quiets), resumes = atomic_load(&w->resumes);
    if (w->phase == HF_ENDED)
        return;
    hf_dispatch_returned(w);
    hf_leases_notes(w);
    if (quiets != w->quiets_seen) {
        w->quiets_seen = quiets;
        w->quiet = true;
        hf_report_text(w, HF_LOG_INFO, "quiet: nothing more is claimed", NULL, NULL);
        for (size_t i = 0; i < w->n_served; i++)
            w->served[i].timer_ms = 0;
        hf_wake_give_back(w);
    }
    if (resumes != w->resumes_seen) {
        w->resumes_seen = resumes;
        /* CONT comes after many a STOP and TERM as well. */
        if (w->quiet && w->phase == HF_SERVING)
            hf_report_text(w, HF_LOG_INFO, "claiming again", NULL, NULL);
        w->quiet = false;
        hf_claim_all(w, true);
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

/* ---- Redis comes and goes ---- */

static void on_written(const hf_answer *answer, void *arg)
{
    (void)answer; /* done again after the next reconnect */
    (void)arg;
}

/* HF_OK, or why this Redis is not fit. */
static hf_err fit(hf_worker *w)
{
    const hf_server_info *info = hf_client_server(w->client);
    if (info->policy[0] != '\0' && strcmp(info->policy, "noeviction") != 0) {
        snprintf(w->detail, sizeof w->detail,
                 "expected maxmemory-policy noeviction, found %s: locks would be evicted "
                 "first",
                 info->policy);
        return HF_POLICY;
    }
    if (strcmp(info->role, "slave") == 0) {
        snprintf(w->detail, sizeof w->detail, "expected a primary, found a replica");
        return HF_READONLY;
    }
    return HF_OK;
}

static void note_server(hf_worker *w)
{
    const hf_server_info *info = hf_client_server(w->client);
    bool changed = w->connected_before && (strcmp(w->run_id, info->run_id) != 0 ||
                                           strcmp(w->replid, info->replid) != 0);
    if (!w->connected_before && !info->aof && !info->rdb)
        hf_report_text(w, HF_LOG_WARN, "Redis keeps nothing on disk: jobs end with it",
                       NULL, NULL);
    if (changed) {
        hf_report_text(w, HF_LOG_WARN,
                       "Redis was restarted or replaced: leases are verified", "run_id",
                       info->run_id);
        hf_watchdog_verify(w->watchdog);
    }
    if (w->connected_before)
        w->forgive_until_ns = hf_boot_ns() + w->opts.lease_ms * HF_MS_NS;
    snprintf(w->run_id, sizeof w->run_id, "%s", info->run_id);
    snprintf(w->replid, sizeof w->replid, "%s", info->replid);
}

static void tell_queues(hf_worker *w)
{
    for (size_t i = 0; i < w->n_served; i++) {
        hf_served *served = &w->served[i];
        if (hf_op_register(w->client, &served->queue, on_written, w) != HF_OK)
            return;
        if (served->limits.has_limits &&
            hf_op_file_limits(w->client, &served->queue, served->limits.max_running,
                              served->limits.rate_limit, served->limits.rate_per_ms,
                              on_written, w) != HF_OK)
            return;
    }
}

static void on_client_event(hf_client *client, hf_err err, const char *detail, void *arg)
{
    hf_worker *w = arg;
    (void)client;
    if (w->phase == HF_ENDED)
        return;
    if (err != HF_OK) {
        if (w->phase == HF_STARTING && (err == HF_AUTH || err == HF_OLD)) {
            w->result = err;
            snprintf(w->detail, sizeof w->detail, "%s", detail);
            take_down(w);
        } else if (w->phase != HF_STARTING) {
            hf_report_text(w, HF_LOG_ERROR, "Redis is away", "error", detail);
        }
        return;
    }
    err = fit(w);
    if (err != HF_OK && w->phase == HF_STARTING) {
        w->result = err;
        take_down(w);
        return;
    }
    if (err != HF_OK)
        hf_report_text(w, HF_LOG_ERROR, "this Redis is not fit", "error", w->detail);
    note_server(w);
    if (w->connected_before)
        hf_report_text(w, HF_LOG_INFO, "Redis is back", NULL, NULL);
    w->connected_before = true;
    tell_queues(w);
    if (w->phase == HF_STARTING) {
        w->phase = HF_SERVING;
        uv_timer_stop(&w->phase_timer);
        uv_timer_start(&w->beat, on_beat_timer, 20, HF_BEAT_MS);
        hf_report_text(w, HF_LOG_INFO, "serving", "worker", w->id);
    }
    hf_claim_all(w, true);
    w->alive_at_ns = 0;
    hf_wake_check(w);
    hf_life_turn(w);
}

static void on_start_over(uv_timer_t *timer)
{
    hf_worker *w = timer->data;
    hf_err err = hf_client_status(w->client);
    w->result = err == HF_OK ? HF_CONN : err;
    snprintf(w->detail, sizeof w->detail, "%s", hf_client_detail(w->client));
    take_down(w);
}

/* ---- the end ---- */

static void on_give_up(uv_timer_t *timer)
{
    hf_worker *w = timer->data;
    hf_log_field field = {.key = "jobs", .number = (int64_t)w->held};
    if (w->held > w->c_out)
        hf_report(w, HF_LOG_ERROR, "verdicts were not answered: their leases end", &field,
                  1);
    take_down(w);
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
    for (size_t i = 0; i < w->n_served; i++)
        if (w->served[i].claiming)
            return; /* what it took is to be released */
    bool all = w->held == 0 || (w->phase == HF_ENDING && w->held == w->c_out);
    if (all && connections_idle(w))
        take_down(w);
}

static void close_handle(uv_handle_t *handle)
{
    if (!uv_is_closing(handle))
        uv_close(handle, NULL);
}

/* Everything of this loop is closed but `async`, which other threads may use until the
 * worker is freed; uv_run() comes back when that is done. What is answered by it sees
 * phase ENDED. */
static void close_all(hf_worker *w)
{
    hf_client *client = w->client, *wake_client = w->wake_client;
    hf_programs *programs = w->programs;
    uv_handle_t *handles[] = {
        (uv_handle_t *)&w->turn,        (uv_handle_t *)&w->tick,
        (uv_handle_t *)&w->baton_timer, (uv_handle_t *)&w->beat,
        (uv_handle_t *)&w->phase_timer, (uv_handle_t *)&w->retry_timer,
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
    close_all(arg);
}

static void on_gone_late(uv_timer_t *timer)
{
    close_all(timer->data);
}

/* Signs off, at most for as long as one request may take. */
static void take_down(hf_worker *w)
{
    if (w->phase == HF_ENDED)
        return;
    bool told = w->phase != HF_STARTING && hf_client_ready(w->client);
    w->phase = HF_ENDED;
    w->unreturned = w->c_out;
    uv_timer_start(&w->phase_timer, on_gone_late, w->opts.request_timeout_ms + 1, 0);
    if (!told || hf_op_heartbeat(w->client, w->ns, w->id, NULL, 0, on_gone, w) != HF_OK)
        close_all(w);
}

/* ---- run ---- */

static hf_err open_handles(hf_worker *w)
{
    uv_timer_t *timers[] = {&w->baton_timer, &w->tick, &w->beat, &w->phase_timer,
                            &w->retry_timer};
    for (size_t i = 0; i < HF_COUNT(timers); i++) {
        uv_timer_init(&w->loop, timers[i]);
        timers[i]->data = w;
    }
    uv_check_init(&w->loop, &w->turn);
    w->turn.data = w;
    w->async.data = w;
    if (uv_async_init(&w->loop, &w->async, on_async) != 0)
        return HF_SYSTEM;
    return HF_OK;
}

static hf_err open_clients(hf_worker *w)
{
    hf_client_opts opts = {.loop = &w->loop,
                           .url = w->url,
                           .password_file = w->password_file,
                           .connect_timeout_ms = w->opts.connect_timeout_ms,
                           .request_timeout_ms = w->opts.request_timeout_ms,
                           .on_event = on_client_event,
                           .arg = w};
    hf_err err = hf_client_open(&w->client, &opts, w->detail);
    if (err != HF_OK)
        return err;
    opts.on_event = hf_wake_client_event;
    return hf_client_open(&w->wake_client, &opts, w->detail);
}

/* A line of a program's output, for the log. */
static void on_line(void *job_arg, int stream, const char *text, size_t len, void *arg)
{
    hf_run *run = job_arg;
    (void)len; /* followed by a NUL */
    hf_log_field fields[] = {{.key = "job", .text = run->id},
                             {.key = "stream",
                              .text = stream == 1   ? "stdout"
                                      : stream == 2 ? "stderr"
                                                    : "holdfast"},
                             {.key = "line", .text = text}};
    hf_report(arg, HF_LOG_INFO, "output", fields, HF_COUNT(fields));
}

static void on_minder(bool ready, void *arg)
{
    hf_worker *w = arg;
    hf_report_text(w, ready ? HF_LOG_INFO : HF_LOG_ERROR,
                   ready ? "the minder is back"
                         : "the minder is away: no program is started",
                   NULL, NULL);
    if (ready)
        hf_life_turn(w);
}

/* The minder before any thread, then the threads, then the connections. */
static hf_err open_all(hf_worker *w)
{
    hf_err err = open_handles(w);
    if (err == HF_OK && w->has_programs) {
        hf_programs_opts opts = {.minder_path = w->minder,
                                 .kill_grace_ms = w->opts.kill_grace_ms,
                                 .on_line = on_line,
                                 .on_ready = on_minder,
                                 .arg = w};
        err = hf_programs_new(&w->programs, &w->loop, &opts, w->detail);
    }
    if (err == HF_OK)
        err =
            hf_pool_new(&w->pool, w->opts.concurrency, hf_dispatch_work, on_returned, w);
    if (err == HF_OK)
        err = hf_leases_start(w, w->detail);
    if (err == HF_OK)
        err = open_clients(w);
    return err;
}

/* What could not be settled any more: its leases end by themselves. */
static void forget_held(hf_worker *w)
{
    hf_run *run;
    for (size_t i = 0; i < w->n_served; i++)
        for (hf_verdict_op op = HF_OP_COMPLETE; op <= HF_OP_BURY; op++) {
            hf_run_list *lists[] = {&w->served[i].fresh[op], &w->served[i].resent[op]};
            for (size_t k = 0; k < HF_COUNT(lists); k++)
                while ((run = hf_run_pop(lists[k])) != NULL) {
                    if (run->lease != NULL)
                        hf_watchdog_drop(w->watchdog, run->lease);
                    hf_run_free(run);
                }
        }
}

hf_err hf_worker_run(hf_worker *w, char detail[HF_DETAIL_SIZE])
{
    if (w->ran || w->n_handlers == 0 || uv_loop_init(&w->loop) != 0)
        return w->ran || w->n_handlers == 0 ? HF_INVALID : HF_SYSTEM;
    w->ran = true;
    w->phase = HF_STARTING;
    w->result = open_all(w);
    atomic_store(&w->async_ready, w->result == HF_OK);
    if (w->result != HF_OK) {
        w->phase = HF_ENDED;
        close_all(w);
    } else {
        uv_check_start(&w->turn, on_turn);
        uv_timer_start(&w->phase_timer, on_start_over, HF_START_MS, 0);
        uv_async_send(&w->async); /* it may have been stopped before */
    }
    uv_run(&w->loop, UV_RUN_DEFAULT);
    forget_held(w);
    if (detail != NULL)
        snprintf(detail, HF_DETAIL_SIZE, "%s", w->detail);
    return w->result;
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
    atomic_store(&w->async_ready, false);
    close_handle((uv_handle_t *)&w->async);
    uv_run(&w->loop, UV_RUN_DEFAULT);
    HF_ASSERT(uv_loop_close(&w->loop) == 0);
}
