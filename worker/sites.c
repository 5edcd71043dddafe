/* sites.c - the Redis of a worker comes, goes, and comes back as another (worker/site.h).
 *
 * At the start a Redis that cannot be used ends the worker with the reason; later it
 * waits for a better one. After each reconnect every queue is claimed once, and no crash
 * is counted for a lease: Redis was away, not the holders. */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "worker/confirm.h"
#include "worker/deaths.h"
#include "worker/leases.h"
#include "worker/life.h"
#include "worker/present.h"
#include "worker/queues.h"
#include "worker/redis_clock.h"
#include "worker/report.h"
#include "worker/schedules.h"
#include "worker/site.h"
#include "worker/waking.h"

bool hf_site_ready(const hf_site *site)
{
    return site->client != NULL && hf_client_ready(site->client);
}

bool hf_site_can_ask(const hf_site *site)
{
    return hf_site_ready(site) && site->redis->pause_until_ns == 0;
}

bool hf_site_serves(const hf_site *site)
{
    return hf_life_serving(site->worker) && hf_server_now(site->redis) != 0 &&
           hf_leases_watched(site);
}

bool hf_sites_ready(const hf_worker *w)
{
    for (size_t i = 0; i < w->n_sites; i++)
        if (hf_site_ready(w->sites[i]))
            return true;
    return false;
}

/* ---- refusals ---- */

static void on_pause_over(uv_timer_t *timer)
{
    hf_site *site = timer->data;
    site->redis->pause_until_ns = 0;
    hf_life_turn(site->worker);
}

void hf_site_pause(hf_site *site, hf_err err)
{
    hf_server *redis = site->redis;
    hf_worker *w = site->worker;
    if (w->phase == HF_ENDED || redis->pause_until_ns != 0)
        return;
    hf_server_pause(redis, err, hf_boot_ns());
    uint64_t ms = (redis->pause_until_ns - redis->paused_ns) / HF_MS_NS;
    uv_update_time(&w->loop);
    uv_timer_start(&site->pause_timer, on_pause_over, ms, 0);
}

/* A refusal that lasts is logged once, not with every try. */
void hf_site_refused(hf_site *site, hf_err err, const char *detail)
{
    hf_worker *w = site->worker;
    bool first = hf_cluster_is_plain(w->cluster) && hf_server_now(site->redis) == 0;
    if (err == HF_AUTH && w->phase == HF_SERVING && first) {
        hf_life_refuse(w, err, detail);
        return;
    }
    if (err != site->refused && err != HF_DEADLINE)
        hf_report_text(w, HF_LOG_ERROR, "Redis refuses to give jobs", "error", detail);
    site->refused = err;
    hf_site_pause(site, err);
}

/* Leases that could not be renewed meanwhile are taken over by then: that is no crash. */
void hf_site_forgive(hf_site *site)
{
    site->forgive_until_ns = hf_boot_ns() + 3 * site->worker->opts.lease_ms * HF_MS_NS;
}

/* ---- its queues ---- */

/* A registration or limits that could not be written are written after the next check or
 * reconnect; at once, if Redis only did not know the script. */
void hf_site_registered(hf_served *served, hf_err err, const char *detail)
{
    served->requests--;
    if (err == HF_MOVED || err == HF_UNSERVED)
        hf_site_unserved(served->site, HF_UNSERVED, detail);
    if (err != HF_OK && err != HF_SHARDED)
        served->registered = false;
    if (err == HF_NOSCRIPT)
        hf_site_register(served->site);
}

static void on_registered(const hf_answer *answer, void *arg)
{
    hf_site_registered(arg, answer->err, answer->detail);
}

static void on_limits(const hf_answer *answer, void *arg)
{
    hf_served *served = arg;
    hf_whole *whole = served->whole;
    char rate[HF_RATE_SIZE];
    hf_site_registered(served, answer->err, answer->detail);
    if (answer->err == HF_SHARDED)
        (void)hf_shards_learn(served, answer->detail);
    if (answer->err != HF_OK || !whole->new_limits ||
        hf_queue_is(served->state, HF_Q_GONE))
        return;
    whole->new_limits = false;
    hf_report_rate(&whole->limits, rate);
    const hf_log_field fields[] = {
        {.key = "queue", .text = served->queue.name},
        {.key = "max_running", .number = whole->limits.max_running},
        {.key = "rate", .text = rate}};
    hf_report(served->worker, HF_LOG_INFO, "Redis knows the limits of the file", fields,
              HF_COUNT(fields));
}

static hf_err send_limits(hf_served *served)
{
    if (!served->whole->limits.has_limits || hf_queue_is_divided(served))
        return HF_OK;
    const hf_shard_limits limits = hf_queue_limits(served);
    hf_err err =
        hf_op_file_limits(served->site->client, &served->queue, limits.max_running,
                          limits.rate_limit, limits.rate_per_ms, on_limits, served);
    served->requests += err == HF_OK ? 1 : 0;
    return err;
}

/* The name is that of the whole queue. */
static hf_err send_name(hf_served *served)
{
    const hf_site *registry = served->worker->registry;
    hf_err err = HF_CONN;
    if (served != served->whole->members)
        return HF_OK;
    if (hf_site_ready(registry))
        err = hf_op_register(registry->client, &served->queue, on_registered, served);
    served->requests += err == HF_OK ? 1 : 0;
    return err;
}

/* It is divided first of all: it cannot be after its first job. */
static hf_err send_shards(hf_served *served)
{
    if (served != served->whole->members || served->whole->limits.shards == 0)
        return HF_OK;
    hf_err err = hf_shards_ask(served);
    served->requests += err == HF_OK ? 1 : 0;
    return err;
}

static void register_queue(hf_served *served)
{
    hf_err (*const steps[])(hf_served *) = {send_shards,        send_name,
                                            send_limits,        hf_present_register,
                                            hf_deaths_register, hf_schedules_register};
    hf_err err = HF_OK;
    for (size_t i = 0; i < HF_COUNT(steps) && err == HF_OK; i++)
        err = steps[i](served);
    served->registered = err == HF_OK;
}

void hf_site_register(hf_site *site)
{
    const hf_worker *w = site->worker;
    for (size_t i = 0; i < hf_queues_count(w) && hf_site_ready(site); i++)
        if (hf_queues_at(w, i)->site == site && !hf_queues_at(w, i)->registered)
            register_queue(hf_queues_at(w, i));
}

/* The consequences of missing commands; each is logged once. */
void hf_site_report_lacks(hf_site *site)
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
    unsigned lacks = atomic_load(&site->redis->lacks);
    for (size_t i = 0; i < HF_COUNT(all); i++) {
        const hf_log_field fields[] = {{.key = "command", .text = all[i].command},
                                       {.key = "without", .text = all[i].without}};
        if (lacks & ~site->lacks_logged & all[i].bit)
            hf_report(site->worker, HF_LOG_WARN, "Redis does not permit a command",
                      fields, HF_COUNT(fields));
    }
    site->lacks_logged |= lacks;
}

/* ---- it comes and goes ---- */

/* HF_OK, or why this Redis cannot be used. */
static hf_err fit(const hf_site *site, char detail[HF_DETAIL_SIZE])
{
    const hf_server_info *info = hf_client_server(site->client);
    if (info->policy[0] != '\0' && strcmp(info->policy, "noeviction") != 0) {
        snprintf(detail, HF_DETAIL_SIZE,
                 "expected maxmemory-policy noeviction, found %s: locks would be evicted "
                 "first",
                 info->policy);
        return HF_POLICY;
    }
    return HF_OK;
}

static void note_life(hf_site *site)
{
    hf_worker *w = site->worker;
    const hf_server_info *info = hf_client_server(site->client);
    uint64_t life = hf_client_life(site->client), before = site->life;
    bool told = info->run_id[0] != '\0'; /* INFO is permitted */
    site->life = life;
    if (before == 0 && told && !info->aof && !info->rdb)
        hf_report_text(w, HF_LOG_WARN,
                       "Redis has no append-only file, and has saved no snapshot yet",
                       NULL, NULL);
    if (before == 0 || (life == before && hf_client_was_idle(site->client)))
        return;
    hf_site_forgive(site);
    if (life != before) {
        hf_report_text(w, HF_LOG_WARN,
                       told ? "Redis was restarted or replaced: leases are verified"
                            : "Redis may be another one: leases are verified",
                       "run_id", info->run_id);
        hf_watchdog_verify(w->watchdog);
    }
    hf_report_text(w, HF_LOG_INFO, "Redis is back",
                   hf_cluster_is_plain(w->cluster) ? NULL : "node", site->redis->place);
}

static void on_time(const hf_answer *answer, void *arg)
{
    hf_site *site = arg;
    int64_t now_ms;
    if (hf_time_read(answer, &now_ms) != HF_OK || site->worker->phase == HF_ENDED)
        return;
    hf_clock_read(site, now_ms, answer->sent_ns);
    hf_beat_send(site->worker);
}

/* No claim and no check tells the time of a site without queues: the heartbeat needs it.
 */
void hf_site_learn_time(hf_site *site)
{
    const hf_worker *w = site->worker;
    if (site != w->registry || !hf_site_ready(site) || hf_server_now(site->redis) != 0)
        return;
    for (size_t i = 0; i < hf_queues_count(w); i++)
        if (hf_queues_at(w, i)->site == site)
            return;
    if (hf_redis_time(site->client, on_time, site) != HF_OK)
        return; /* the next heartbeat asks again */
}

/* It is connected to a Redis that it may use. */
static void serve(hf_site *site)
{
    hf_worker *w = site->worker;
    note_life(site);
    hf_site_report_lacks(site);
    for (size_t i = 0; i < hf_queues_count(w); i++)
        if (hf_queues_at(w, i)->site == site)
            hf_queues_at(w, i)->registered = false; /* it may be another Redis */
    for (size_t i = 0; i < w->n_sites; i++)
        if (w->sites[i] == site || site == w->registry)
            hf_site_register(w->sites[i]);
    hf_life_started(w);
    hf_queues_doubt(site);
    hf_claim_introduce(w);
    hf_check_send(site);
    hf_beat_send(w); /* it may be a Redis that never heard of us */
    hf_life_turn(w);
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
        hf_life_refuse(w, HF_AUTH, answer->detail);
    else
        serve(site);
}

static void ask_permission(hf_site *site)
{
    const hf_worker *w = site->worker;
    const hf_queue *queue = NULL;
    for (size_t i = 0; i < hf_queues_count(w) && queue == NULL; i++)
        if (hf_queues_at(w, i)->site == site)
            queue = &hf_queues_at(w, i)->queue;
    if (queue == NULL ||
        hf_op_permitted(site->client, queue, on_permitted, site) != HF_OK)
        serve(site);
}

static void on_client(hf_client *client, hf_err err, const char *detail, void *arg)
{
    hf_site *site = arg;
    hf_worker *w = site->worker;
    char unfit[HF_DETAIL_SIZE];
    if (w->phase == HF_ENDED)
        return;
    if (err != HF_OK) {
        hf_check_other_data(site);
        hf_cluster_doubt(w->cluster);
        bool replica = err == HF_READONLY && hf_cluster_is_plain(w->cluster);
        if (w->phase == HF_STARTING && (hf_client_is_refused(client) || replica)) {
            hf_life_refuse(w, err, detail);
        } else if (w->phase != HF_STARTING && !hf_client_was_idle(client)) {
            hf_report_outage(w, &site->outage, "Redis is away", err, detail);
        }
        return;
    }
    site->outage = (hf_outage){HF_OK, 0};
    err = fit(site, unfit);
    if (err != HF_OK && w->phase == HF_STARTING) {
        hf_life_refuse(w, err, unfit);
        return;
    }
    if (err != HF_OK)
        hf_report_text(w, HF_LOG_ERROR, "this Redis cannot be used", "error", unfit);
    if (w->phase == HF_STARTING)
        ask_permission(site);
    else
        serve(site);
}

/* ---- opening and closing ---- */

hf_err hf_site_connect(hf_site *site, char detail[HF_DETAIL_SIZE])
{
    const hf_client_opts opts = {.loop = &site->worker->loop,
                                 .redis = site->redis,
                                 .on_event = on_client,
                                 .arg = site};
    hf_err err = hf_client_open(&site->client, &opts, detail);
    if (err == HF_OK)
        err = hf_confirm_open(site);
    return err;
}

void hf_site_disconnect(hf_site *site)
{
    hf_client *client = site->client;
    site->client = NULL;
    hf_confirm_close(site);
    hf_client_close(client, NULL, NULL);
}
