/* site.c - worker/node/site.h.
 *
 * At the start a Redis that cannot be used ends the worker with the reason; later it
 * waits for a better one. */
#include "worker/node/site.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "queue/keys.h"
#include "redis/err.h"
#include "worker/report.h"
#include "worker/worker.h"

bool hf_site_ready(const hf_site *site)
{
    return site->base.client != NULL && hf_client_ready(site->base.client);
}

bool hf_site_can_ask(const hf_site *site)
{
    return hf_site_ready(site) && site->base.redis->pause_until_ns == 0;
}

bool hf_site_watched(const hf_site *site)
{
    uint64_t since = atomic_load(&site->unwatched_ns);
    uint32_t lease_ms = site->worker->opts.lease_ms;
    return since == 0 || hf_boot_ns() - since < lease_ms * HF_MS_NS / 2;
}

bool hf_site_serves(const hf_site *site)
{
    return site->worker->serving && hf_server_now(site->base.redis) != 0 &&
           hf_site_watched(site);
}

/* ---- refusals ---- */

static void on_pause_over(uv_timer_t *timer)
{
    hf_site *site = timer->data;
    site->base.redis->pause_until_ns = 0;
    site->worker->turn_due = true;
}

void hf_site_pause(hf_site *site, hf_err err)
{
    hf_server *redis = site->base.redis;
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
    bool first =
        hf_cluster_is_plain(w->nodes.cluster) && hf_server_now(site->base.redis) == 0;
    if (err == HF_AUTH && w->phase == HF_SERVING && first) {
        w->hooks->on_unusable(w, err, detail);
        return;
    }
    if (err != site->refused && err != HF_DEADLINE)
        hf_report_text(w, HF_LOG_ERROR, "Redis refuses to give jobs", "error", detail);
    site->refused = err;
    hf_site_pause(site, err);
}

/* Leases that could not be renewed meanwhile are taken over by then: that is no crash. */
void hf_site_count_no_crash(hf_site *site)
{
    site->no_crash_until_ns = hf_boot_ns() + 3 * site->worker->opts.lease_ms * HF_MS_NS;
}

bool hf_site_unserved(hf_site *site, hf_err err, const char *detail)
{
    hf_worker *w = site->worker;
    if (!hf_err_is(err, HF_ERR_OF_CLUSTER))
        return false;
    if (w->phase == HF_ENDED)
        return true;
    (void)hf_cluster_refused(w->nodes.cluster, site->base.redis, err, detail);
    w->reroute = true;
    return true;
}

/* ---- its clock ---- */

/* The clock itself is known to the server (redis/server.h): each answer with a TIME is a
 * sample of it, on whichever connection. */
enum { STEP_TOLD_MS = 1000 };

/* Smaller ones appear in the samples and need no action. */
static bool is_worth_logging(const hf_worker *w, int64_t step_ms)
{
    int64_t least = w->opts.lease_ms / 10;
    return llabs(step_ms) > (least < STEP_TOLD_MS ? least : STEP_TOLD_MS);
}

bool hf_site_clock_sample(hf_site *site, int64_t now_ms, uint64_t sent_ns)
{
    int64_t step_ms = hf_server_sample(site->base.redis, now_ms, sent_ns);
    if (!is_worth_logging(site->worker, step_ms))
        return false;
    atomic_store(&site->stepped_ms, step_ms);
    hf_watchdog_verify(site->worker->watchdog); /* a step forward ends locks */
    return true;
}

/* After a step back what was ready stays ready: a check sees to it. */
void hf_site_clock_tell(hf_site *site)
{
    hf_worker *w = site->worker;
    int64_t by_ms = atomic_exchange(&site->stepped_ms, 0);
    if (by_ms == 0)
        return;
    hf_log_field field = {.key = "by_ms", .number = by_ms};
    hf_report(w, HF_LOG_ERROR, "the clock of Redis jumped", &field, 1);
    if (by_ms < 0)
        w->hooks->on_clock_back(site);
}

void hf_site_clock_read(hf_site *site, int64_t now_ms, uint64_t sent_ns)
{
    hf_counters_request(site->worker->counters, hf_boot_ns() - sent_ns);
    if (hf_site_clock_sample(site, now_ms, sent_ns))
        hf_site_clock_tell(site);
}

int64_t hf_site_not_after(const hf_site *site)
{
    uint32_t room = site->base.redis->request_timeout_ms;
    int64_t now = hf_server_now(site->base.redis);
    return now == 0 ? 0 : now + (room < HF_NOT_AFTER_MS ? room : HF_NOT_AFTER_MS);
}

bool hf_site_time_has_come(const hf_site *site, int64_t at_ms)
{
    return hf_server_when(site->base.redis, at_ms) <= hf_boot_ns();
}

/* ---- its replicas ---- */

void hf_site_confirm(hf_site *site, hf_confirm *confirm,
                     void (*cb)(void *arg, hf_err err, const char *detail), void *arg)
{
    uint32_t ms = site->worker->opts.wait_replicas_ms;
    *confirm = (hf_confirm){.wanted = site->worker->opts.wait_replicas,
                            .until_ns = hf_boot_ns() + ms * HF_MS_NS,
                            .cb = cb,
                            .arg = arg};
    hf_err err = hf_node_confirm(&site->base, confirm);
    HF_ASSERT(err == HF_OK); /* it was connected with the site */
}

void hf_site_confirm_report(hf_site *site, hf_err err, const char *detail)
{
    hf_worker *w = site->worker;
    if (err == HF_OK && site->unguarded.err != HF_OK) {
        site->unguarded = (hf_outage){HF_OK, 0};
        hf_report_text(w, HF_LOG_INFO, "replicas confirm again", NULL, NULL);
    } else if (err == HF_UNCONFIRMED) {
        hf_report_outage(w, &site->unguarded,
                         "replicas do not confirm: no job is started", err, detail);
    }
}

/* ---- what it permits ---- */

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
    unsigned lacks = atomic_load(&site->base.redis->lacks);
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
    const hf_server_info *info = hf_client_server(site->base.client);
    if (info->policy[0] != '\0' && strcmp(info->policy, "noeviction") != 0) {
        snprintf(detail, HF_DETAIL_SIZE,
                 "expected maxmemory-policy noeviction, found %s: locks would be evicted "
                 "first",
                 info->policy);
        return HF_POLICY;
    }
    return HF_OK;
}

void hf_site_note_life(hf_site *site)
{
    hf_worker *w = site->worker;
    const hf_server_info *info = hf_client_server(site->base.client);
    uint64_t life = hf_client_life(site->base.client), before = site->life;
    bool told = info->run_id[0] != '\0'; /* INFO is permitted */
    site->life = life;
    if (before == 0 && told && !info->aof && !info->rdb)
        hf_report_text(w, HF_LOG_WARN,
                       "Redis has no append-only file, and has saved no snapshot yet",
                       NULL, NULL);
    if (before == 0 || (life == before && hf_client_was_idle(site->base.client)))
        return;
    hf_site_count_no_crash(site);
    if (life != before) {
        hf_report_text(w, HF_LOG_WARN,
                       told ? "Redis was restarted or replaced: leases are verified"
                            : "Redis may be another one: leases are verified",
                       "run_id", info->run_id);
        hf_watchdog_verify(w->watchdog);
    }
    hf_report_text(w, HF_LOG_INFO, "Redis is back",
                   hf_cluster_is_plain(w->nodes.cluster) ? NULL : "node",
                   site->base.redis->place);
}

void hf_site_on_event(hf_node *base, hf_err err, const char *detail)
{
    hf_site *site = HF_CONTAINER(base, hf_site, base);
    const hf_client *client = base->client;
    hf_worker *w = site->worker;
    char unfit[HF_DETAIL_SIZE];
    if (w->phase == HF_ENDED)
        return;
    if (err != HF_OK) {
        w->hooks->on_other_data(site);
        bool replica = err == HF_READONLY && hf_cluster_is_plain(w->nodes.cluster);
        if (w->phase == HF_STARTING && (hf_client_is_refused(client) || replica)) {
            w->hooks->on_unusable(w, err, detail);
        } else if (w->phase != HF_STARTING && !hf_client_was_idle(client)) {
            hf_report_outage(w, &site->outage, "Redis is away", err, detail);
        }
        return;
    }
    site->outage = (hf_outage){HF_OK, 0};
    err = fit(site, unfit);
    if (err != HF_OK && w->phase == HF_STARTING) {
        w->hooks->on_unusable(w, err, unfit);
        return;
    }
    if (err != HF_OK)
        hf_report_text(w, HF_LOG_ERROR, "this Redis cannot be used", "error", unfit);
    w->hooks->on_up(site);
}
