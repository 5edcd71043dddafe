/* report.c - how the worker writes its log. Failures of jobs are warnings, of the system
 * errors; each claim and each wake-up are there for debugging. */
#include <stdio.h>

#include "base/clock.h"
#include "base/text.h"
#include "worker/report.h"
#include "worker/shared.h"

void hf_report(hf_worker *w, hf_log_level level, const char *message,
               const hf_log_field *fields, size_t n)
{
    if (w->opts.log == NULL)
        return;
    pthread_mutex_lock(&w->log_lock);
    w->opts.log(level, message, fields, n, w->opts.log_arg);
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
    bool news = outage->err != err || now - outage->told_ns >= HF_REMIND_MS * HF_MS_NS;
    if (news)
        *outage = (hf_outage){err, now};
    hf_log_field field = {.key = "error", .text = detail};
    hf_report(w, news ? HF_LOG_ERROR : HF_LOG_DEBUG, message, &field, 1);
}

void hf_report_rate(const hf_worker_queue *limits, char out[HF_RATE_SIZE])
{
    char per[HF_DURATION_SIZE];
    hf_format_duration(limits->rate_per_ms, per);
    (void)snprintf(out, HF_RATE_SIZE, limits->rate_limit == 0 ? "0" : "%u/%s",
                   limits->rate_limit, per);
}
