/* report.c - what the worker tells its log: one line for each finished job, and for what
 * happens to the system. Failures of jobs are warnings, of the system errors; each claim
 * and each wake-up are there for debugging. */
#include <stdio.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/text.h"
#include "holdfast/admin.h"
#include "worker/core.h"

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

/* A C handler that has not returned may be writing what goes with its verdict. */
static bool handler_has_it(const hf_run *run)
{
    return run->state == HF_STARTED && run->handler->fn != NULL;
}

static int64_t ran_for_ms(const hf_run *run)
{
    bool runs = handler_has_it(run);
    uint64_t from = runs ? atomic_load(&run->begun_ns) : run->started_ns;
    uint64_t to = runs ? hf_boot_ns() : run->ended_ns;
    return from == 0 || to < from ? 0 : (int64_t)((to - from) / HF_MS_NS);
}

void hf_report_run(hf_worker *w, const hf_run *run, const char *outcome)
{
    hf_log_field fields[9];
    char in[HF_DURATION_SIZE];
    size_t n = 0;
    if (w->opts.log == NULL)
        return;
    int64_t run_ms = ran_for_ms(run);
    fields[n++] = (hf_log_field){.key = "job", .text = run->id};
    fields[n++] = (hf_log_field){.key = "queue", .text = run->served->queue.name};
    fields[n++] = (hf_log_field){.key = "type", .text = run->record.type};
    fields[n++] = (hf_log_field){.key = "attempt", .number = run->record.attempts + 1};
    fields[n++] = (hf_log_field){.key = "wait_ms", .number = run->wait_ms};
    fields[n++] = (hf_log_field){.key = "run_ms", .number = run_ms};
    fields[n++] = (hf_log_field){.key = "outcome", .text = outcome};
    if (run->op == HF_OP_RETRY) {
        hf_format_duration(run->delay_ms, in);
        fields[n++] = (hf_log_field){.key = "in", .text = in};
    }
    if (!handler_has_it(run) && run->error != NULL)
        fields[n++] = (hf_log_field){.key = "error", .text = run->error};
    HF_ASSERT(n <= HF_COUNT(fields));
    bool ok = !run->lost_told && (run->op == HF_OP_COMPLETE ||
                                  (run->op == HF_OP_RELEASE && run->error == NULL));
    hf_report(w, ok ? HF_LOG_INFO : HF_LOG_WARN, "job", fields, n);
}

void hf_report_claimed(const hf_served *served, const hf_claimed *claimed)
{
    const hf_log_field fields[] = {{.key = "queue", .text = served->queue.name},
                                   {.key = "asked", .number = served->asked},
                                   {.key = "jobs", .number = (int64_t)claimed->n}};
    hf_report(served->worker, HF_LOG_DEBUG, "claimed", fields, HF_COUNT(fields));
}

void hf_report_woken(const hf_served *served, int64_t at_ms)
{
    int64_t now_ms = hf_clock_now(served->worker);
    const hf_log_field fields[] = {
        {.key = "queue", .text = served->queue.name},
        {.key = "in_ms", .number = at_ms > now_ms ? at_ms - now_ms : 0}};
    hf_report(served->worker, HF_LOG_DEBUG, "woken", fields, HF_COUNT(fields));
}

void hf_report_buried(const hf_served *served, const hf_claimed *claimed)
{
    char job[HF_ID_SIZE], text[HF_ERROR_MAX];
    for (size_t i = 0; i < claimed->n_buried; i++) {
        hf_bytes id, why;
        hf_claimed_buried(claimed, i, &id, &why);
        snprintf(job, sizeof job, "%.*s", (int)id.len, (const char *)id.ptr);
        snprintf(text, sizeof text, "%.*s", (int)why.len, (const char *)why.ptr);
        const hf_log_field fields[] = {{.key = "job", .text = job},
                                       {.key = "queue", .text = served->queue.name},
                                       {.key = "outcome", .text = "dead"},
                                       {.key = "error", .text = text}};
        hf_report(served->worker, HF_LOG_WARN, "job", fields, HF_COUNT(fields));
    }
}
