/* trace.c - see trace.h. */
#include "worker/run/trace.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "queue/tracing.h"
#include "worker/node/site.h"
#include "worker/queues/queues.h"
#include "worker/run/run.h"

/* ---- ids ---- */

static void name_trace(const hf_run *run, hf_traceparent *out)
{
    char created[24];
    snprintf(created, sizeof created, "%" PRId64, hf_run_created_ms(run));
    const char *const job[] = {run->served->queue.prefix, run->id, created};
    hf_trace_id_of(out->trace_id, sizeof out->trace_id, job, HF_COUNT(job));
}

static void name_span(const hf_run *run, const char *fence, hf_traceparent *out)
{
    char trace[HF_TRACEPARENT_SIZE];
    const hf_traceparent bare = {.sampled = false};
    hf_traceparent with = bare;
    memcpy(with.trace_id, out->trace_id, sizeof with.trace_id);
    hf_traceparent_write(&with, trace);
    const char *const texts[] = {trace, run->id, fence};
    hf_trace_id_of(out->span_id, sizeof out->span_id, texts, HF_COUNT(texts));
}

static void name_both(hf_run *run)
{
    const hf_tracer *tracer = &run->worker->tracer;
    hf_run_trace *t = &run->trace;
    bool child = t->has_job && tracer->link == HF_TRACE_CHILD;
    if (child)
        t->here = t->job;
    else
        name_trace(run, &t->here);
    t->here.sampled =
        t->has_job ? t->job.sampled : hf_tracer_samples(tracer, t->here.trace_id);
    name_span(run, run->fence, &t->here);
}

void hf_trace_begin(hf_run *run)
{
    hf_run_trace *t = &run->trace;
    const hf_bytes headers = run->record.headers;
    t->has_job = hf_traceparent_find(headers.ptr, headers.len, &t->job);
    if (hf_tracer_is_on(&run->worker->tracer))
        name_both(run);
    else if (t->has_job)
        t->here = t->job;
    else
        return;
    hf_traceparent_write(&t->here, t->text);
}

/* ---- spans ---- */

/* The class of an error: "SMTPServerBusy" of "SMTPServerBusy: 421". The rest may be
 * anything that the job is about. */
static const char *class_of(const char *error, char out[HF_NAME_MAX])
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                  "0123456789_.";
    size_t len = error == NULL ? 0 : strspn(error, letters);
    if (len == 0 || len >= HF_NAME_MAX || error[len] != ':' || error[len + 1] != ' ')
        return "_OTHER";
    memcpy(out, error, len);
    out[len] = '\0';
    return out;
}

static bool is_lost(const hf_run *run)
{
    return run->outcome != NULL && strcmp(run->outcome, "lost") == 0;
}

/* NULL: the run has not failed. */
static const char *error_of(const hf_run *run, char out[HF_NAME_MAX])
{
    if (is_lost(run))
        return "lost";
    if (run->op == HF_OP_CRASH)
        return "crashed";
    if (run->op != HF_OP_RETRY && run->op != HF_OP_BURY)
        return NULL;
    return atomic_load(&run->timed_out) ? "timeout" : class_of(run->error, out);
}

static void add_link(hf_span *span, const hf_traceparent *to)
{
    hf_span_ref_set(&span->links[span->n_links++], to);
}

static void describe(const hf_run *run, hf_span *span)
{
    span->queue = run->served->queue.name;
    span->type = run->record.type;
    span->id = run->id;
    span->client = run->worker->id;
    span->fence = hf_run_fence(run);
    span->body_bytes = run->record.payload.len;
    span->attempt = run->record.attempts + 1;
    span->run = span->attempt + run->crashes;
}

static void tell_process(const hf_run *run, hf_span *span)
{
    const hf_run_trace *t = &run->trace;
    span->kind = HF_SPAN_PROCESS;
    hf_span_ref_set(&span->self, &t->here);
    if (t->has_job && run->worker->tracer.link == HF_TRACE_CHILD)
        memcpy(span->parent_id, t->job.span_id, sizeof span->parent_id);
    else if (t->has_job)
        add_link(span, &t->job);
    if (run->record.failed_fence[0] != '\0') {
        hf_traceparent before = t->here;
        name_span(run, run->record.failed_fence, &before);
        add_link(span, &before);
    }
    span->outcome = run->outcome;
    span->wait_ms = run->wait_ms;
    run->worker->tracer.on_span(span, run->worker->tracer.arg);
}

static void tell_settle(const hf_run *run, hf_span *span)
{
    hf_traceparent self = run->trace.here;
    name_span(run, "settle", &self);
    span->kind = HF_SPAN_SETTLE;
    hf_span_ref_set(&span->self, &self);
    memcpy(span->parent_id, run->trace.here.span_id, sizeof span->parent_id);
    run->worker->tracer.on_span(span, run->worker->tracer.arg);
}

void hf_trace_end(const hf_run *run)
{
    char error[HF_NAME_MAX];
    hf_span_server server;
    hf_span process = {.size = sizeof process};
    if (!hf_tracer_is_on(&run->worker->tracer) || !run->trace.here.sampled ||
        run->stands_in_for != NULL || hf_run_begun_ns(run) == 0)
        return;
    uint64_t now = hf_boot_ns(), ended = run->ended_ns != 0 ? run->ended_ns : now;
    describe(run, &process);
    hf_span_server_set(&server, &run->served->site->base.redis->url);
    hf_span_server_put(&process, &server);
    hf_span settle = process;
    process.start_ns = hf_span_unix_ns(run->claimed_ns);
    process.end_ns = settle.start_ns =
        process.start_ns + (int64_t)(ended - run->claimed_ns);
    settle.end_ns = process.start_ns + (int64_t)(now - run->claimed_ns);
    process.error_type = error_of(run, error);
    settle.error_type = is_lost(run) ? "lost" : NULL;
    tell_process(run, &process);
    tell_settle(run, &settle);
}
