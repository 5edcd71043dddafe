/* server.c - what a worker does when its Redis comes, goes, and comes back as another.
 *
 * At the start a Redis that cannot be used ends the worker with the reason; later it
 * waits for a better one. After each reconnect every queue is claimed once, and no crash
 * is counted for a lease: Redis was away, not the holders. */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "worker/life.h"
#include "worker/queues.h"
#include "worker/report.h"
#include "worker/shared.h"
#include "worker/waking.h"

/* What could not be written is written after the next check or reconnect; what only met
 * a Redis that did not know the script, at once. */
static void on_told(const hf_answer *answer, void *arg)
{
    hf_served *served = arg;
    served->requests--;
    if (answer->err != HF_OK)
        served->registered = false;
    if (answer->err == HF_NOSCRIPT)
        hf_server_tell(served->worker);
}

static void on_limits(const hf_answer *answer, void *arg)
{
    hf_served *served = arg;
    char rate[HF_RATE_SIZE];
    on_told(answer, arg);
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
        hf_life_forgive(w);
    snprintf(w->run_id, sizeof w->run_id, "%s", info->run_id);
    snprintf(w->replid, sizeof w->replid, "%s", info->replid);
}

static void tell(hf_worker *w, hf_served *served)
{
    if (hf_op_register(w->client, &served->queue, on_told, served) != HF_OK)
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

void hf_server_tell(hf_worker *w)
{
    for (size_t i = 0; i < hf_queues_count(w) && hf_client_ready(w->client); i++)
        if (!hf_queues_at(w, i)->registered)
            tell(w, hf_queues_at(w, i));
}

/* What it does without them; each is logged once. */
void hf_server_tell_lacks(hf_worker *w)
{
    enum { LACKS_UNBLOCK = 8 };
    static const struct {
        unsigned bit;
        const char *command, *without;
    } all[] = {
        {HF_LACKS_ID, "CLIENT ID",
         "what a lost connection has sent may still run, and a wait for jobs is not "
         "ended "
         "early"},
        {HF_LACKS_INFO, "INFO",
         "the role and the policy of this Redis are not checked, and a wait for jobs is "
         "not ended early"},
        {HF_LACKS_KILL, "CLIENT KILL", "what a lost connection has sent may still run"},
        {LACKS_UNBLOCK, "CLIENT UNBLOCK",
         "a wait for jobs is not ended early: a full or quiet worker is woken in vain, "
         "and a reload takes seconds"},
    };
    unsigned lacks = hf_client_lacks(w->client) | hf_client_lacks(w->wake_client) |
                     (hf_wake_cannot_unblock(w) ? LACKS_UNBLOCK : 0);
    for (size_t i = 0; i < HF_COUNT(all); i++) {
        const hf_log_field fields[] = {{.key = "command", .text = all[i].command},
                                       {.key = "without", .text = all[i].without}};
        if (lacks & ~w->lacks_logged & all[i].bit)
            hf_report(w, HF_LOG_WARN, "Redis does not permit a command", fields,
                      HF_COUNT(fields));
    }
    w->lacks_logged |= lacks;
}

void hf_server_event(hf_client *client, hf_err err, const char *detail, void *arg)
{
    hf_worker *w = arg;
    if (w->phase == HF_ENDED)
        return;
    if (err != HF_OK) {
        if (w->phase == HF_STARTING &&
            (err == HF_AUTH || err == HF_UNSUPPORTED || err == HF_READONLY)) {
            w->result = err;
            snprintf(w->detail, sizeof w->detail, "%s", detail);
            hf_end_take_down(w);
        } else if (w->phase != HF_STARTING) {
            hf_report_outage(w, &w->outage, "Redis is away", err, detail);
        }
        return;
    }
    w->outage = (hf_outage){HF_OK, 0};
    if (hf_client_is_behind(w->wake_client, client))
        hf_client_reset(w->wake_client); /* it may wait there for seconds */
    err = fit(w);
    if (err != HF_OK && w->phase == HF_STARTING) {
        w->result = err;
        hf_end_take_down(w);
        return;
    }
    if (err != HF_OK)
        hf_report_text(w, HF_LOG_ERROR, "this Redis is not fit", "error", w->detail);
    note_server(w);
    if (w->connected_before)
        hf_report_text(w, HF_LOG_INFO, "Redis is back", NULL, NULL);
    w->connected_before = true;
    hf_server_tell_lacks(w);
    for (size_t i = 0; i < hf_queues_count(w); i++)
        hf_queues_at(w, i)->registered = false; /* it may be another Redis */
    hf_server_tell(w);
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

void hf_server_start_over(uv_timer_t *timer)
{
    hf_worker *w = timer->data;
    hf_err err = hf_client_status(w->client);
    w->result = err == HF_OK ? HF_CONN : err;
    snprintf(w->detail, sizeof w->detail, "%s", hf_client_detail(w->client));
    hf_end_take_down(w);
}
