/* metrics.c - the metrics of a worker and its health, as <holdfast/worker.h> gives them
 * to any thread. Nothing here waits for the loop. */
#include <inttypes.h>
#include <stdio.h>
#include <uv.h>

#include "base/clock.h"
#include "base/detail.h"
#include "holdfast/version.h"
#include "worker/metrics/counters.h"
#include "worker/worker.h"

enum { TEXT_MAX = 8 << 20, LOOP_MS = 10000, CLAIM_MS = 30000 };

static uint64_t loop_age_ms(const hf_worker *w)
{
    if (atomic_load(&w->health.due_ms) == 0)
        return 0;
    return hf_health_age_ms(&w->health, uv_hrtime() / HF_MS_NS);
}

/* ---- health ---- */

bool hf_worker_alive(const hf_worker *w, char detail[HF_DETAIL_SIZE])
{
    const uint64_t age = loop_age_ms(w);
    if (atomic_load(&w->health.due_ms) == 0) {
        (void)hf_say(detail, HF_CLOSED, "the worker does not run");
        return false;
    }
    if (age > LOOP_MS) {
        (void)hf_say(detail, HF_BUSY, "the loop has not turned for %" PRIu64 " s",
                     age / 1000);
        return false;
    }
    return true;
}

/* NULL: it serves. */
static const char *why_not_serving(const hf_worker *w)
{
    static const char stopping[] = "the worker is being stopped";
    if (atomic_load(&w->stops) > 0)
        return stopping;
    switch ((hf_health_state)atomic_load(&w->health.state)) {
    case HF_HEALTH_STARTING:
        return "the worker has not started yet";
    case HF_HEALTH_QUIET:
        return "the worker is quiet: it claims nothing";
    case HF_HEALTH_STOPPING:
        return stopping;
    case HF_HEALTH_SERVING:
        break;
    }
    return NULL;
}

static const char *why_not_heard(const hf_worker *w)
{
    const uint64_t heard = atomic_load(&w->health.heard_ns);
    if (heard == 0)
        return "Redis has not answered a claim yet";
    return hf_boot_ns() > heard + CLAIM_MS * HF_MS_NS
               ? "Redis has not answered a claim for 30 s"
               : NULL;
}

static const char *why_no_pool(const hf_worker *w)
{
    size_t pools;
    const size_t up = hf_counters_pools_up(w->counters, &pools);
    return pools > 0 && up == 0 ? "no pool is ready" : NULL;
}

bool hf_worker_ready(const hf_worker *w, char detail[HF_DETAIL_SIZE])
{
    if (!hf_worker_alive(w, detail))
        return false;
    const char *why = why_not_serving(w);
    if (why == NULL)
        why = why_not_heard(w);
    if (why == NULL)
        why = why_no_pool(w);
    if (why != NULL)
        (void)hf_say(detail, HF_BUSY, "%s", why);
    return why == NULL;
}

uint32_t hf_worker_running(const hf_worker *w)
{
    return atomic_load(&w->health.running);
}

uint32_t hf_worker_slots(const hf_worker *w)
{
    return atomic_load(&w->health.slots);
}

/* ---- the text ---- */

static void write_slots(const hf_worker *w, hf_prom *out)
{
    const uint32_t busy = hf_worker_running(w), all = hf_worker_slots(w);
    hf_prom_family(out, "holdfast_worker_slots", HF_PROM_GAUGE, "Slots of the worker.");
    const hf_prom_label is_busy[HF_PROM_LABELS] = {{"state", "busy"}},
                        is_free[HF_PROM_LABELS] = {{"state", "free"}};
    hf_prom_value(out, is_busy, busy, HF_PROM_ONE);
    hf_prom_value(out, is_free, all > busy ? all - busy : 0, HF_PROM_ONE);
}

static void write_loop(const hf_worker *w, hf_prom *out)
{
    hf_prom_family(out, "holdfast_build_info", HF_PROM_GAUGE, "The version of Holdfast.");
    const hf_prom_label version[HF_PROM_LABELS] = {{"version", HOLDFAST_VERSION}};
    hf_prom_value(out, version, 1, HF_PROM_ONE);
    hf_prom_family(out, "holdfast_worker_ready", HF_PROM_GAUGE,
                   "1 if the worker takes jobs, as /readyz tells.");
    hf_prom_value(out, NULL, hf_worker_ready(w, NULL) ? 1 : 0, HF_PROM_ONE);
    hf_prom_family(out, "holdfast_worker_loop_age_seconds", HF_PROM_GAUGE,
                   "For how long the loop has been at work, or should have turned; 0 "
                   "while it waits.");
    hf_prom_value(out, NULL, loop_age_ms(w), HF_PROM_MS);
}

uint64_t hf_worker_spans_dropped(const hf_worker *w)
{
    return w->tracer.dropped == NULL ? 0 : w->tracer.dropped(w->tracer.arg);
}

static void write_spans(const hf_worker *w, hf_prom *out)
{
    hf_prom_family(out, "holdfast_worker_spans_dropped_total", HF_PROM_COUNTER,
                   "Spans that no collector took.");
    hf_prom_value(out, NULL, hf_worker_spans_dropped(w), HF_PROM_ONE);
}

hf_err hf_worker_metrics(const hf_worker *w, hf_metrics_format format, char **text,
                         size_t *len)
{
    hf_prom out;
    hf_prom_begin(&out, format == HF_METRICS_OPENMETRICS, TEXT_MAX);
    write_loop(w, &out);
    write_slots(w, &out);
    write_spans(w, &out);
    hf_counters_write(w->counters, &out);
    hf_err err = hf_prom_end(&out);
    if (err != HF_OK) {
        hf_buf_done(&out.buf);
        return err;
    }
    *text = out.buf.data;
    *len = out.buf.len;
    return HF_OK;
}
