/* heartbeat.c - worker/heartbeat.h. The heartbeat is in Redis; the pulse is a counter for
 * a supervisor of this process.
 *
 * The pulse rises when Redis has answered a claim or a check and the loop came round. An
 * idle worker claims nothing, but its waits end with a check; and a timer always leads to
 * one (wake.c). */
#include "worker/heartbeat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/json_text.h"
#include "redis/plain.h"
#include "worker/node/site.h"
#include "worker/node/sites.h"
#include "worker/pool/supervisors.h"
#include "worker/queues/queues.h"
#include "worker/report.h"
#include "worker/runner/runner.h"
#include "worker/runs.h"
#include "worker/worker.h"

/* ---- the heartbeat ---- */

enum {
    HEARTBEAT_MS = 10000, /* heartbeats, which hold for three */
    SLOTS_MS = 1000, /* at least between two of them, when slots become busy or free */
    JSON_MAX = 32 << 10,
    END_ROOM = 32
};

typedef struct hf_heartbeat {
    uv_timer_t timer;
    bool under_way, again;  /* one was not answered yet; another one follows */
    hf_err refused;         /* why, as it was logged last */
    const char *shown;      /* the state that was shown last; NULL: none */
    uint32_t shown_running; /* and how many jobs ran */
    uint64_t sent_ns;       /* the last one */
    bool soon;              /* the timer comes before its time */
    int64_t started_ms;     /* Redis's clock */
    _Atomic uint64_t pulse;
} hf_heartbeat;

static const char *state_of(const hf_worker *w)
{
    if (w->phase != HF_SERVING)
        return "stopping";
    return w->quiet ? "quiet" : "serving";
}

/* Names are [A-Za-z0-9._:-]: nothing needs escaping. False: some did not fit. */
static bool add_types(const hf_worker *w, hf_buf *json)
{
    for (size_t i = 0; i < w->n_handlers; i++) {
        const char *type = w->handlers[i]->type;
        if (json->len + HF_ID_SIZE + END_ROOM > JSON_MAX)
            return false;
        hf_buf_printf(json, "%s\"%s\"", i == 0 ? "" : ",", type);
    }
    return true;
}

static void add_pools(const hf_worker *w, hf_buf *json)
{
    static const char *const states[] = {"starting", "up", "down"};
    hf_pool_facts list[HF_POOLS_MAX];
    hf_pool_gauges gauges[HF_POOLS_MAX];
    size_t n = hf_supervisors_facts(w, list);
    for (size_t i = 0; i < n; i++) {
        const hf_pool_facts *pool = &list[i];
        gauges[i] = (hf_pool_gauges){.name = pool->name,
                                     .up = pool->health == HF_POOL_UP,
                                     .processes = pool->processes,
                                     .slots = pool->slots,
                                     .running = pool->running,
                                     .memory = pool->resident};
        hf_buf_text(json, i == 0 ? "{\"name\":\"" : ",{\"name\":\"");
        hf_json_escape(json, pool->name, strlen(pool->name));
        hf_buf_printf(json,
                      "\",\"state\":\"%s\",\"processes\":%zu,\"slots\":%zu,"
                      "\"running\":%zu,\"memory\":%llu}",
                      states[pool->health], pool->processes, pool->slots, pool->running,
                      (unsigned long long)pool->resident);
    }
    hf_counters_pools(w->counters, gauges, n);
}

static void write_json(const hf_worker *w, hf_buf *json)
{
    int64_t now_ms = hf_server_now(w->registry->base.redis);
    hf_buf_printf(json,
                  "{\"v\":1,\"id\":\"%s\",\"host\":\"%s\",\"pid\":%ld,"
                  "\"version\":\"" HOLDFAST_VERSION "\",\"state\":\"%s\","
                  "\"concurrency\":%u,\"running\":%u,\"started_ms\":%lld,"
                  "\"now_ms\":%lld,\"queues\":[",
                  w->id, w->host, (long)getpid(), state_of(w), hf_runner_capacity(w),
                  hf_runner_now(w), (long long)w->heartbeat->started_ms,
                  (long long)now_ms);
    for (size_t i = 0; i < hf_queues_wholes(w); i++)
        hf_buf_printf(json, "%s\"%s\"", i == 0 ? "" : ",",
                      hf_queue_whole_name(hf_queues_whole(w, i)));
    hf_buf_text(json, "],\"pools\":[");
    add_pools(w, json);
    hf_buf_text(json, "],\"types\":[");
    bool all = add_types(w, json);
    hf_buf_text(json, all ? "]}" : "],\"types_cut\":true}");
}

/* Without heartbeats `holdfast worker list` takes this worker for one that went silent. A
 * connection that is away is logged elsewhere. */
static void report_refusal(hf_worker *w, const hf_answer *answer, hf_err err)
{
    if (hf_site_unserved(w->registry, err, answer->detail) || err == HF_UNSURE ||
        err == HF_NOSCRIPT || err == HF_CLOSED || err == HF_CONN || err == HF_TIMEOUT)
        return;
    if (err != HF_OK && err != w->heartbeat->refused)
        hf_report_text(w, HF_LOG_WARN, "Redis refuses the heartbeat", "error",
                       answer->detail);
    else if (err == HF_OK && w->heartbeat->refused != HF_OK)
        hf_report_text(w, HF_LOG_INFO, "Redis takes the heartbeat again", NULL, NULL);
    w->heartbeat->refused = err;
}

/* One that Redis did not know the script of is sent again: by now it has it. So is one
 * that was overtaken. */
static void on_heartbeat(const hf_answer *answer, void *arg)
{
    hf_worker *w = arg;
    bool watched;
    hf_err err = hf_heartbeat_read(answer, &watched);
    w->heartbeat->under_way = false;
    if (w->phase == HF_ENDED)
        return;
    report_refusal(w, answer, err);
    if (err == HF_OK)
        hf_runs_watched(w, watched);
    if (err == HF_NOSCRIPT || w->heartbeat->again)
        hf_heartbeat_send(w);
}

static void on_time(const hf_answer *answer, void *arg)
{
    hf_site *site = arg;
    int64_t now_ms;
    if (hf_plain_time_read(answer, &now_ms) != HF_OK || site->worker->phase == HF_ENDED)
        return;
    hf_site_clock_read(site, now_ms, answer->sent_ns);
    hf_heartbeat_send(site->worker);
}

/* No claim and no check tells the time of a site without queues: the heartbeat needs it.
 */
static void learn_time(hf_site *site)
{
    const hf_worker *w = site->worker;
    if (site != w->registry || !hf_site_ready(site) ||
        hf_server_now(site->base.redis) != 0)
        return;
    for (size_t i = 0; i < hf_queues_count(w); i++)
        if (hf_queues_at(w, i)->site == site)
            return;
    if (hf_plain_time(site->base.client, on_time, site) != HF_OK)
        return; /* the next heartbeat asks again */
}

void hf_heartbeat_send(hf_worker *w)
{
    w->heartbeat_due = false;
    hf_site *site = w->registry;
    hf_buf json;
    w->heartbeat->again = w->heartbeat->under_way;
    learn_time(site);
    if (w->heartbeat->under_way || !hf_site_ready(site) ||
        hf_server_now(site->base.redis) == 0)
        return;
    if (w->heartbeat->started_ms == 0)
        w->heartbeat->started_ms = hf_server_now(site->base.redis);
    w->heartbeat->shown = state_of(w);
    w->heartbeat->shown_running = hf_runner_now(w);
    w->heartbeat->sent_ns = hf_boot_ns();
    hf_buf_init(&json, JSON_MAX);
    write_json(w, &json);
    if (hf_buf_err(&json) == HF_OK &&
        hf_op_heartbeat(site->base.client, w->ns, w->id, json.data, 3 * HEARTBEAT_MS,
                        on_heartbeat, w) == HF_OK)
        w->heartbeat->under_way = true;
    hf_buf_done(&json);
}

static void on_timer(uv_timer_t *timer)
{
    hf_worker *w = timer->data;
    w->heartbeat->soon = false;
    hf_heartbeat_send(w);
}

/* `holdfast worker list` shows the slots that are busy: now if the last heartbeat is old,
 * else in a moment. */
static void show_slots(hf_worker *w)
{
    hf_heartbeat *b = w->heartbeat;
    uint64_t next_ns = b->sent_ns + SLOTS_MS * HF_MS_NS, now = hf_boot_ns();
    if (b->soon || b->shown == NULL || w->phase == HF_ENDED)
        return;
    if (now >= next_ns) {
        hf_heartbeat_send(w);
        return;
    }
    b->soon = true;
    uv_update_time(&w->loop);
    uv_timer_start(&b->timer, on_timer, (next_ns - now) / HF_MS_NS + 1, HEARTBEAT_MS);
}

/* ---- the pulse ---- */

static hf_health_state health_of(const hf_worker *w)
{
    if (w->phase == HF_STARTING)
        return HF_HEALTH_STARTING;
    if (w->phase != HF_SERVING)
        return HF_HEALTH_STOPPING;
    return w->quiet ? HF_HEALTH_QUIET : HF_HEALTH_SERVING;
}

/* The first time it means that each queue was asked for jobs, unless this worker wants
 * none: it may be full with those of the first. */
static bool has_looked(const hf_worker *w)
{
    return w->phase != HF_SERVING || w->quiet || hf_runner_slots(w) == 0 ||
           hf_queues_all_claimed(w);
}

static bool is_watched(const hf_worker *w)
{
    for (hf_site *site = NULL; (site = hf_sites_next(w, site)) != NULL;)
        if (hf_site_watched(site))
            return true;
    return false;
}

void hf_heartbeat_turn(hf_worker *w)
{
    uint32_t running = hf_runner_now(w);
    hf_health_is(&w->health, health_of(w), running, hf_runner_capacity(w));
    if (w->heartbeat_due ||
        (w->phase != HF_STARTING && w->heartbeat->shown != state_of(w)))
        hf_heartbeat_send(w); /* the first one as soon as Redis's time is known */
    else if (running != w->heartbeat->shown_running)
        show_slots(w);
    if (!w->heard || !is_watched(w))
        return;
    w->heard = false;
    if (atomic_load(&w->heartbeat->pulse) > 0 || has_looked(w)) {
        atomic_fetch_add(&w->heartbeat->pulse, 1);
        hf_health_heard(&w->health, hf_boot_ns());
    }
}

hf_err hf_heartbeat_new(hf_worker *w)
{
    w->heartbeat = calloc(1, sizeof *w->heartbeat);
    return w->heartbeat == NULL ? HF_NOMEM : HF_OK;
}

void hf_heartbeat_free(hf_worker *w)
{
    free(w->heartbeat);
    w->heartbeat = NULL;
}

void hf_heartbeat_open(hf_worker *w)
{
    uv_timer_init(&w->loop, &w->heartbeat->timer);
    w->heartbeat->timer.data = w;
}

void hf_heartbeat_close(hf_worker *w)
{
    if (!uv_is_closing((uv_handle_t *)&w->heartbeat->timer))
        uv_close((uv_handle_t *)&w->heartbeat->timer, NULL);
}

void hf_heartbeat_start(hf_worker *w)
{
    uv_timer_start(&w->heartbeat->timer, on_timer, HEARTBEAT_MS, HEARTBEAT_MS);
}

uint64_t hf_worker_pulse(const hf_worker *w)
{
    return atomic_load(&w->heartbeat->pulse);
}
