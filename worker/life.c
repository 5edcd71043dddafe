/* life.c - a worker's start, its turns, its end, and what it does when its Redis comes,
 * goes, and comes back as another.
 *
 *   STARTING -> SERVING -> STOPPING -> ENDING -> ENDED
 *       \_ cannot _/          |  stop again, or shutdown_timeout: programs are killed
 *        be used              '- everything returned: straight to ENDED
 *
 * STOPPING claims nothing, gives back what has not started and its batons, and waits for
 * what runs. ENDING kills programs; when only C handlers are left that do not return,
 * their jobs are released as the last thing.
 *
 * At the start a Redis that cannot be used ends the worker with the reason; later it
 * waits for a better one. After each reconnect every queue is claimed once, and no crash
 * is counted for a lease: Redis was away, not the holders. */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "worker/confirm.h"
#include "worker/leases.h"
#include "worker/life.h"
#include "worker/queues.h"
#include "worker/redis_clock.h"
#include "worker/report.h"
#include "worker/running.h"
#include "worker/shared.h"
#include "worker/verdicts.h"
#include "worker/waking.h"

enum { GIVE_UP_MS = 3000, START_MS = 5000 /* for Redis */, TICK_MS = 50 };

static void begin_end(hf_worker *w);
static void take_down(hf_worker *w);

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

/* ---- the end ---- */

static void on_give_up(uv_timer_t *timer)
{
    hf_worker *w = timer->data;
    hf_log_field field = {.key = "jobs", .number = (int64_t)w->held};
    if (w->held > hf_running_out(w))
        hf_report(w, HF_LOG_ERROR, "verdicts were not answered: their leases end", &field,
                  1);
    take_down(w);
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

static void check_end(hf_worker *w)
{
    if (w->phase != HF_STOPPING && w->phase != HF_ENDING)
        return;
    if (w->phase == HF_ENDING && !w->shadows_sent && w->held == hf_running_out(w)) {
        w->shadows_sent = true;
        hf_running_abandon(w);
        hf_verdict_flush(w);
    }
    if (hf_queues_under_way(w))
        return; /* claimed jobs are released */
    bool all = w->held == 0 || (w->phase == HF_ENDING && w->held == hf_running_out(w));
    if (all && connections_idle(w))
        take_down(w);
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
    hf_client *client = w->client, *wake_client = w->wake_client;
    uv_handle_t *handles[] = {
        (uv_handle_t *)&w->turn,
        (uv_handle_t *)&w->tick,
        (uv_handle_t *)&w->phase_timer,
        (uv_handle_t *)&w->retry_timer,
    };
    w->client = w->wake_client = NULL;
    hf_worker_replicas_close(w);
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
    close_all(arg);
}

static void on_gone_late(uv_timer_t *timer)
{
    close_all(timer->data);
}

/* Signs off, within the time of one request. */
static void take_down(hf_worker *w)
{
    if (w->phase == HF_ENDED)
        return;
    bool told = w->phase != HF_STARTING && hf_client_ready(w->client);
    w->phase = HF_ENDED;
    w->unreturned = hf_running_out(w);
    uv_timer_start(&w->phase_timer, on_gone_late, w->redis->request_timeout_ms + 1, 0);
    if (!told || hf_op_heartbeat(w->client, w->ns, w->id, NULL, 0, on_gone, w) != HF_OK)
        close_all(w);
}

/* The jobs without a final answer: their leases expire. */
static void forget_held(hf_worker *w)
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

bool hf_life_serving(const hf_worker *w)
{
    return w->phase == HF_SERVING && !w->quiet && hf_server_now(w->redis) != 0 &&
           hf_leases_watched(w);
}

/* ---- turns ---- */

static void on_pause_over(uv_timer_t *timer)
{
    hf_worker *w = timer->data;
    w->redis->pause_until_ns = 0;
    hf_life_turn(w);
}

void hf_life_pause(hf_worker *w, hf_err err)
{
    hf_server *redis = w->redis;
    if (w->phase == HF_ENDED || redis->pause_until_ns != 0)
        return;
    hf_server_pause(redis, err, hf_boot_ns());
    uint64_t ms = (redis->pause_until_ns - redis->paused_ns) / HF_MS_NS;
    uv_update_time(&w->loop);
    uv_timer_start(&w->retry_timer, on_pause_over, ms, 0);
}

/* A refusal that lasts is logged once, not with every try. */
void hf_life_refused(hf_worker *w, hf_err err, const char *detail)
{
    if (err == HF_AUTH && w->phase == HF_SERVING && hf_server_now(w->redis) == 0) {
        w->result = err;
        snprintf(w->detail, sizeof w->detail, "%s", detail);
        take_down(w);
        return;
    }
    if (err != w->refused && err != HF_DEADLINE)
        hf_report_text(w, HF_LOG_ERROR, "Redis refuses to give jobs", "error", detail);
    w->refused = err;
    hf_life_pause(w, err);
}

/* This worker was away, or Redis was, but not the holders: the next takeovers are not due
 * to crashes. This lasts for one lease until this worker can judge leases again, and one
 * more for leases of new workers. */
static void forgive(hf_worker *w)
{
    w->forgive_until_ns = hf_boot_ns() + 3 * w->opts.lease_ms * HF_MS_NS;
}

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
        forgive(w);
        hf_watchdog_verify(w->watchdog);
    }
    w->tick_ns = now;
}

static void on_tick(uv_timer_t *timer)
{
    hf_worker *w = timer->data;
    notice_pause(w);
    hf_running_tick(w);
    hf_life_turn(w);
}

void hf_life_turn(hf_worker *w)
{
    if (w->phase == HF_ENDED)
        return;
    if (w->phase == HF_SERVING && hf_server_now(w->redis) == 0)
        hf_check_send(w);
    hf_running_dispatch(w);
    if (hf_running_must_return(w))
        return; /* the rest comes when its handler was called */
    bool sent = hf_verdict_flush(w);
    hf_claim_lost(w);
    if (!sent || !hf_claim_can_wait(w))
        hf_claim_pump(w);
    hf_wake_pump(w);
    hf_wake_timers(w);
    if (w->held > 0 && !uv_is_active((uv_handle_t *)&w->tick)) {
        w->tick_ns = 0;
        uv_timer_start(&w->tick, on_tick, TICK_MS, TICK_MS);
    } else if (w->held == 0) {
        uv_timer_stop(&w->tick);
    }
    hf_beat_turn(w);
    check_end(w);
    hf_running_turned(w);
}

static void on_turn(uv_check_t *check)
{
    hf_life_turn(check->data);
}

/* ---- Redis comes and goes ---- */

/* A registration or limits that could not be written are written after the next check or
 * reconnect; at once, if Redis only did not know the script. */
static void on_registered(const hf_answer *answer, void *arg)
{
    hf_served *served = arg;
    served->requests--;
    if (answer->err != HF_OK)
        served->registered = false;
    if (answer->err == HF_NOSCRIPT)
        hf_life_register(served->worker);
}

static void on_limits(const hf_answer *answer, void *arg)
{
    hf_served *served = arg;
    char rate[HF_RATE_SIZE];
    on_registered(answer, arg);
    if (answer->err != HF_OK || !served->new_limits ||
        hf_queue_is(served->state, HF_Q_GONE))
        return;
    served->new_limits = false;
    hf_report_rate(&served->limits, rate);
    const hf_log_field fields[] = {
        {.key = "queue", .text = served->queue.name},
        {.key = "max_running", .number = served->limits.max_running},
        {.key = "rate", .text = rate}};
    hf_report(served->worker, HF_LOG_INFO, "Redis knows the limits of the file", fields,
              HF_COUNT(fields));
}

/* HF_OK, or why this Redis cannot be used. */
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
    return HF_OK;
}

static void note_life(hf_worker *w)
{
    const hf_server_info *info = hf_client_server(w->client);
    uint64_t life = hf_client_life(w->client), before = w->life;
    bool told = info->run_id[0] != '\0'; /* INFO is permitted */
    w->life = life;
    if (before == 0 && told && !info->aof && !info->rdb)
        hf_report_text(w, HF_LOG_WARN, "Redis keeps nothing on disk: jobs end with it",
                       NULL, NULL);
    if (before == 0)
        return;
    forgive(w);
    if (life != before) {
        hf_report_text(w, HF_LOG_WARN,
                       told ? "Redis was restarted or replaced: leases are verified"
                            : "Redis may be another one: leases are verified",
                       "run_id", info->run_id);
        hf_watchdog_verify(w->watchdog);
        hf_wake_other_data(w);
    }
    hf_report_text(w, HF_LOG_INFO, "Redis is back", NULL, NULL);
}

static void register_queue(hf_worker *w, hf_served *served)
{
    if (hf_op_register(w->client, &served->queue, on_registered, served) != HF_OK)
        return;
    served->registered = true;
    served->requests++;
    if (!served->limits.has_limits)
        return;
    hf_err err = hf_op_file_limits(w->client, &served->queue, served->limits.max_running,
                                   served->limits.rate_limit, served->limits.rate_per_ms,
                                   on_limits, served);
    served->registered = err == HF_OK;
    served->requests += err == HF_OK ? 1 : 0;
}

void hf_life_register(hf_worker *w)
{
    for (size_t i = 0; i < hf_queues_count(w) && hf_client_ready(w->client); i++)
        if (!hf_queues_at(w, i)->registered)
            register_queue(w, hf_queues_at(w, i));
}

/* The consequences of missing commands; each is logged once. */
void hf_life_report_lacks(hf_worker *w)
{
    static const struct {
        unsigned bit;
        const char *command, *without;
    } all[] = {
        {HF_LACKS_ID, "CLIENT ID",
         "requests of a lost connection may still run, and no wait for jobs is ended "
         "early: each lasts half a second at most"},
        {HF_LACKS_INFO, "INFO",
         "this Redis may evict locks, or keep nothing on disk; leases are verified "
         "after each reconnect; requests of a lost connection may still run, and no "
         "wait for jobs is ended early: each lasts half a second at most"},
        {HF_LACKS_KILL, "CLIENT KILL", "requests of a lost connection may still run"},
        {HF_LACKS_UNBLOCK, "CLIENT UNBLOCK",
         "no wait for jobs is ended early: each lasts half a second at most"},
    };
    unsigned lacks = atomic_load(&w->redis->lacks);
    for (size_t i = 0; i < HF_COUNT(all); i++) {
        const hf_log_field fields[] = {{.key = "command", .text = all[i].command},
                                       {.key = "without", .text = all[i].without}};
        if (lacks & ~w->lacks_logged & all[i].bit)
            hf_report(w, HF_LOG_WARN, "Redis does not permit a command", fields,
                      HF_COUNT(fields));
    }
    w->lacks_logged |= lacks;
}

/* It is connected to a Redis that it may use. */
static void serve(hf_worker *w)
{
    note_life(w);
    hf_life_report_lacks(w);
    for (size_t i = 0; i < hf_queues_count(w); i++)
        hf_queues_at(w, i)->registered = false; /* it may be another Redis */
    hf_life_register(w);
    if (w->phase == HF_STARTING) {
        w->phase = HF_SERVING;
        uv_timer_stop(&w->phase_timer);
        hf_beat_start(w);
        hf_wake_start(w);
        hf_report_text(w, HF_LOG_INFO, "serving", "worker", w->id);
    }
    hf_queues_doubt(w);
    hf_claim_introduce(w);
    hf_check_send(w);
    hf_beat_send(w); /* it may be a Redis that never heard of us */
    hf_life_turn(w);
}

static void refuse_start(hf_worker *w, hf_err err, const char *detail)
{
    w->result = err;
    snprintf(w->detail, sizeof w->detail, "%s", detail);
    take_down(w);
}

static void ask_permission(hf_worker *w);

/* Another refusal will be met again by the claims, which know what to do about it. */
static void on_permitted(const hf_answer *answer, void *arg)
{
    hf_worker *w = arg;
    if (w->phase != HF_STARTING || answer->err == HF_UNSURE)
        return;
    if (answer->err == HF_NOSCRIPT)
        ask_permission(w);
    else if (answer->err == HF_AUTH)
        refuse_start(w, HF_AUTH, answer->detail);
    else
        serve(w);
}

static void ask_permission(hf_worker *w)
{
    const hf_queue *queue = &hf_queues_at(w, 0)->queue;
    if (hf_op_permitted(w->client, queue, on_permitted, w) != HF_OK)
        serve(w);
}

static void on_client(hf_client *client, hf_err err, const char *detail, void *arg)
{
    hf_worker *w = arg;
    if (w->phase == HF_ENDED)
        return;
    if (err != HF_OK) {
        if (w->phase == HF_STARTING &&
            (hf_client_is_refused(client) || err == HF_READONLY)) {
            refuse_start(w, err, detail);
        } else if (w->phase != HF_STARTING) {
            hf_report_outage(w, &w->outage, "Redis is away", err, detail);
        }
        return;
    }
    w->outage = (hf_outage){HF_OK, 0};
    err = fit(w);
    if (err != HF_OK && w->phase == HF_STARTING) {
        w->result = err;
        take_down(w);
        return;
    }
    if (err != HF_OK)
        hf_report_text(w, HF_LOG_ERROR, "this Redis cannot be used", "error", w->detail);
    if (w->phase == HF_STARTING)
        ask_permission(w);
    else
        serve(w);
}

static void on_start_over(uv_timer_t *timer)
{
    hf_worker *w = timer->data;
    hf_err err = hf_client_status(w->client);
    w->result = err == HF_OK ? HF_CONN : err;
    snprintf(w->detail, sizeof w->detail, "%s", hf_client_detail(w->client));
    take_down(w);
}

/* ---- from other threads ---- */

static void be_quiet(hf_worker *w)
{
    w->quiet = true;
    hf_report_text(w, HF_LOG_INFO, "quiet: nothing more is claimed", NULL, NULL);
    hf_queues_drop_timers(w);
    hf_check_give_back(w);
}

/* CONT comes after many a STOP and TERM as well. */
static void resume(hf_worker *w)
{
    if (w->quiet && w->phase == HF_SERVING)
        hf_report_text(w, HF_LOG_INFO, "claiming again", NULL, NULL);
    w->quiet = false;
    hf_queues_doubt(w);
}

static void on_async(uv_async_t *async)
{
    hf_worker *w = async->data;
    unsigned stops = atomic_load(&w->stops) - w->stops_seen;
    unsigned orders = atomic_load(&w->orders);
    if (w->phase == HF_ENDED)
        return;
    hf_running_returned(w);
    hf_clock_tell(w);
    hf_leases_notes(w);
    hf_reload_take(w);
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

/* ---- run ---- */

static hf_err open_handles(hf_worker *w)
{
    uv_timer_t *timers[] = {&w->tick, &w->phase_timer, &w->retry_timer};
    for (size_t i = 0; i < HF_COUNT(timers); i++) {
        uv_timer_init(&w->loop, timers[i]);
        timers[i]->data = w;
    }
    hf_wake_open(w);
    hf_beat_open(w);
    uv_check_init(&w->loop, &w->turn);
    w->turn.data = w;
    w->async.data = w;
    if (uv_async_init(&w->loop, &w->async, on_async) != 0)
        return HF_SYSTEM;
    return HF_OK;
}

static hf_err open_clients(hf_worker *w)
{
    hf_client_opts opts = {
        .loop = &w->loop, .redis = w->redis, .on_event = on_client, .arg = w};
    hf_err err = hf_client_open(&w->client, &opts, w->detail);
    if (err != HF_OK)
        return err;
    opts.on_event = hf_wake_client_event;
    opts.blocks = true;
    return hf_client_open(&w->wake_client, &opts, w->detail);
}

/* The minder before any thread, then the threads, then the connections. */
static hf_err open_all(hf_worker *w)
{
    hf_err err = open_handles(w);
    if (err == HF_OK)
        err = hf_server_open(&w->redis, &w->server, w->detail);
    if (err == HF_OK)
        hf_server_judge(w->redis, w->opts.lease_ms);
    if (err == HF_OK)
        err = hf_running_start(w, on_returned);
    if (err == HF_OK)
        err = hf_leases_start(w, w->detail);
    if (err == HF_OK)
        err = open_clients(w);
    if (err == HF_OK)
        err = hf_worker_replicas_open(w);
    return err;
}

hf_err hf_worker_run(hf_worker *w, char detail[HF_DETAIL_SIZE])
{
    if (w->ran || w->n_handlers == 0)
        return hf_plan_refuse(detail, "a new worker with a handler",
                              w->ran ? "one that has run" : NULL);
    if (uv_loop_init(&w->loop) != 0) {
        if (detail != NULL)
            snprintf(detail, HF_DETAIL_SIZE, "%s", hf_err_text(HF_SYSTEM));
        return HF_SYSTEM;
    }
    w->ran = true;
    w->phase = HF_STARTING;
    w->result = open_all(w);
    atomic_store(&w->async_ready, w->result == HF_OK);
    if (w->result != HF_OK) {
        w->phase = HF_ENDED;
        close_all(w);
    } else {
        uv_check_start(&w->turn, on_turn);
        uv_timer_start(&w->phase_timer, on_start_over, START_MS, 0);
        uv_async_send(&w->async); /* it may have been stopped before */
    }
    hf_running_loop(w);
    forget_held(w);
    if (detail != NULL)
        snprintf(detail, HF_DETAIL_SIZE, "%s", w->detail);
    return w->result;
}
