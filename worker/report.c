/* report.c - what the worker tells its log: one line for each finished job, and for what
 * happens to the system. Failures of jobs are warnings, of the system errors. */
#include <stdio.h>

#include "base/base.h"
#include "base/text.h"
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

void hf_report_run(hf_worker *w, const hf_run *run, const char *outcome)
{
    hf_log_field fields[9];
    char in[HF_DURATION_SIZE];
    size_t n = 0;
    if (w->opts.log == NULL)
        return;
    int64_t run_ms = run->started_ns == 0 || run->ended_ns < run->started_ns
                         ? 0
                         : (int64_t)((run->ended_ns - run->started_ns) / 1000000);
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
    if (run->error != NULL)
        fields[n++] = (hf_log_field){.key = "error", .text = run->error};
    HF_ASSERT(n <= HF_COUNT(fields));
    bool ok =
        run->op == HF_OP_COMPLETE || (run->op == HF_OP_RELEASE && run->error == NULL);
    hf_report(w, ok && !run->lost_told ? HF_LOG_INFO : HF_LOG_WARN, "job", fields, n);
}
