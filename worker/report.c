/* report.c - how the worker writes its log. Failures of jobs are warnings, of the system
 * errors; each claim and each wake-up are there for debugging. */
#include "worker/report.h"

#include <stdio.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/text.h"
#include "worker/worker.h"

/* No line has more. */
enum { FIELDS_MAX = 16 };

const hf_log_field *hf_log_field_at(const hf_log_field *fields, size_t i)
{
    return (const hf_log_field *)(const void *)((const char *)fields + i * fields->size);
}

void hf_report(hf_worker *w, hf_log_level level, const char *message,
               const hf_log_field *fields, size_t n)
{
    if (w->opts.log == NULL)
        return;
    hf_log_field sized[FIELDS_MAX];
    HF_ASSERT(n <= HF_COUNT(sized));
    for (size_t i = 0; i < n; i++) {
        sized[i] = fields[i];
        sized[i].size = sizeof sized[i];
    }
    pthread_mutex_lock(&w->log_lock);
    w->opts.log(level, message, sized, n, w->opts.log_arg);
    pthread_mutex_unlock(&w->log_lock);
}

void hf_report_text(hf_worker *w, hf_log_level level, const char *message,
                    const char *key, const char *text)
{
    hf_log_field field = {.key = key, .text = text};
    hf_report(w, level, message, &field, key == NULL ? 0 : 1);
}

void hf_report_outage(hf_worker *w, hf_outage *outage, const char *message, hf_err err,
                      const char *detail)
{
    uint64_t now = hf_boot_ns();
    bool is_new =
        outage->err != err || now - outage->logged_ns >= HF_REMIND_MS * HF_MS_NS;
    if (is_new)
        *outage = (hf_outage){err, now};
    hf_log_field field = {.key = "error", .text = detail};
    hf_report(w, is_new ? HF_LOG_ERROR : HF_LOG_DEBUG, message, &field, 1);
}

void hf_report_rate(const hf_worker_queue *limits, char out[HF_RATE_SIZE])
{
    char per[HF_DURATION_SIZE];
    hf_format_duration(limits->rate_per_ms, per);
    (void)snprintf(out, HF_RATE_SIZE, limits->rate_limit == 0 ? "0" : "%u/%s",
                   limits->rate_limit, per);
}
