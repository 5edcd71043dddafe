/* starts.c - worker/pool/starts.h. */
#include "worker/pool/starts.h"

#include "base/backoff.h"
#include "base/base.h"
#include "base/clock.h"
#include "base/detail.h"
#include "base/text.h"
#include "worker/report.h"

enum { REFUSED_MS = 10000 }; /* jobs of a program that is not started any more */

static const hf_backoff waits = {HF_SHAPE_EXPONENTIAL, 1000, 60000, 0.1};

/* A worker whose first processes do not start has nothing to do, if it was asked to end
 * then. */
static void count_try(hf_starts *starts, hf_worker *w, const hf_pool_spec *spec,
                      const char *why)
{
    uint32_t most = spec->pool.start_tries;
    if (most == 0 || (++starts->tries != most && !starts->refused))
        return;
    if (starts->tries == 1)
        (void)hf_say(w->detail, HF_CONFIG, "'%s' cannot be started: %s", spec->name, why);
    else
        (void)hf_say(w->detail, HF_CONFIG,
                     "%u starts of '%s' have failed, the last one: %s", starts->tries,
                     spec->name, why);
    w->start_failed = w->turn_due = true;
}

void hf_starts_fail(hf_starts *starts, hf_worker *w, const hf_pool_spec *spec, bool first,
                    const char *why)
{
    int64_t ms = hf_backoff_ms(&waits, ++starts->failures, &w->rng);
    char in[HF_DURATION_SIZE];
    starts->failed = true;
    starts->due_ns = hf_boot_ns() + (uint64_t)ms * HF_MS_NS;
    hf_format_duration(ms, in);
    const hf_log_field fields[] = {
        {.key = "pool", .text = spec->name},
        {.key = "next_try", .text = starts->refused ? "reload" : in},
        {.key = "error", .text = why}};
    hf_report(w, HF_LOG_ERROR, "a process of a pool does not live", fields,
              HF_COUNT(fields));
    if (first)
        count_try(starts, w, spec, why);
}

void hf_starts_renew(hf_starts *starts)
{
    *starts = (hf_starts){.tries = starts->tries};
}

int64_t hf_starts_wait_ms(const hf_starts *starts)
{
    uint64_t now = hf_boot_ns();
    if (starts->refused)
        return REFUSED_MS;
    return starts->due_ns <= now ? 0 : (int64_t)((starts->due_ns - now) / HF_MS_NS);
}
