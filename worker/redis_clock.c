/* redis_clock.c - how a worker reacts when Redis's clock is set. The clock itself is
 * known to the server (redis/server.h): each answer with a TIME is a sample of it, on
 * whichever connection. */
#include "worker/redis_clock.h"

#include <stdlib.h>

#include "base/clock.h"
#include "worker/report.h"
#include "worker/waking.h"

enum { STEP_TOLD_MS = 1000 };

/* Smaller ones appear in the samples and need no action. */
static bool is_worth_logging(const hf_worker *w, int64_t step_ms)
{
    int64_t least = w->opts.lease_ms / 10;
    return llabs(step_ms) > (least < STEP_TOLD_MS ? least : STEP_TOLD_MS);
}

bool hf_clock_sample(hf_site *site, int64_t now_ms, uint64_t sent_ns)
{
    int64_t step_ms = hf_server_sample(site->redis, now_ms, sent_ns);
    if (!is_worth_logging(site->worker, step_ms))
        return false;
    atomic_store(&site->stepped_ms, step_ms);
    return true;
}

/* Leases may have lost their locks by a step forward. After a step back what was ready
 * stays ready: a check sees to it. */
void hf_clock_tell(hf_site *site)
{
    hf_worker *w = site->worker;
    int64_t by_ms = atomic_exchange(&site->stepped_ms, 0);
    if (by_ms == 0)
        return;
    hf_log_field field = {.key = "by_ms", .number = by_ms};
    hf_report(w, HF_LOG_ERROR, "the clock of Redis jumped", &field, 1);
    hf_watchdog_verify(w->watchdog);
    if (by_ms < 0)
        hf_check_at(site, hf_boot_ns());
}

void hf_clock_read(hf_site *site, int64_t now_ms, uint64_t sent_ns)
{
    if (hf_clock_sample(site, now_ms, sent_ns))
        hf_clock_tell(site);
}

int64_t hf_clock_not_after(const hf_site *site)
{
    uint32_t room = site->redis->request_timeout_ms;
    int64_t now = hf_server_now(site->redis);
    return now == 0 ? 0 : now + (room < HF_NOT_AFTER_MS ? room : HF_NOT_AFTER_MS);
}
