/* traced.c - see traced.h. */
#include "producer/traced.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/random.h"

/* ---- which spans ---- */

static bool find_parent(const hf_job *job, hf_traceparent *out)
{
    return job->headers != NULL &&
           hf_traceparent_find(job->headers, strlen(job->headers), out);
}

static bool same_trace(const hf_job *job, const hf_job *other)
{
    hf_traceparent one, two;
    return strcmp(hf_check_job_queue(job), hf_check_job_queue(other)) == 0 &&
           find_parent(job, &one) && find_parent(other, &two) &&
           memcmp(&one, &two, sizeof one) == 0;
}

/* The span of a job; not sampled: it has none. */
static void choose_span(const hf_tracer *tracer, const hf_job *job, hf_traceparent *out)
{
    hf_traceparent fresh;
    bool is_child = find_parent(job, out);
    if (hf_random_bytes(&fresh, sizeof fresh) != HF_OK || (is_child && !out->sampled)) {
        out->sampled = false;
        return;
    }
    memcpy(out->span_id, fresh.span_id, sizeof out->span_id);
    if (is_child)
        return;
    memcpy(out->trace_id, fresh.trace_id, sizeof out->trace_id);
    out->sampled = hf_tracer_samples(tracer, out->trace_id);
}

static bool choose_spans(hf_traced *t)
{
    bool any = false;
    for (size_t i = 0; i < t->n; i++) {
        if (i > 0 && same_trace(&t->given[i], &t->given[i - 1]))
            t->spans[i] = t->spans[i - 1];
        else
            choose_span(&t->producer->tracer, &t->given[i], &t->spans[i]);
        any = any || t->spans[i].sampled;
    }
    return any;
}

/* ---- the jobs with their new headers ---- */

enum { MEMBER_MAX = HF_TRACEPARENT_SIZE + 32 };

static size_t room_for(const hf_job *job)
{
    return (job->headers == NULL ? 0 : strlen(job->headers)) + MEMBER_MAX;
}

/* Headers that would be too long stay as they are: the next span has the same parent. */
static void put_headers(hf_traced *t)
{
    char *at = t->headers, text[HF_TRACEPARENT_SIZE];
    for (size_t i = 0; i < t->n; i++) {
        const hf_job *job = &t->given[i];
        size_t len = job->headers == NULL ? 0 : strlen(job->headers);
        size_t room = room_for(job);
        t->jobs[i] = *job;
        if (!t->spans[i].sampled)
            continue;
        if (room > HF_HEADERS_MAX + 1)
            room = HF_HEADERS_MAX + 1;
        hf_traceparent_write(&t->spans[i], text);
        size_t put = hf_traceparent_put(job->headers, len, text, at, room);
        if (put == 0)
            continue;
        t->jobs[i].headers = at;
        at += put + 1;
    }
}

static void free_all(hf_traced *t)
{
    free(t->jobs);
    free(t->headers);
    free(t->spans);
    *t = (hf_traced){.producer = t->producer};
}

const hf_job *hf_traced_begin(hf_traced *t, hf_producer *producer, const hf_job *jobs,
                              size_t n)
{
    size_t room = 0;
    *t = (hf_traced){.producer = producer, .given = jobs, .n = n};
    if (!hf_tracer_is_on(&producer->tracer))
        return jobs;
    t->begun_ns = hf_boot_ns();
    t->spans = calloc(n, sizeof *t->spans);
    if (t->spans == NULL || !choose_spans(t)) {
        free_all(t);
        return jobs;
    }
    for (size_t i = 0; i < n; i++)
        room += t->spans[i].sampled ? room_for(&jobs[i]) : 0;
    t->jobs = malloc(n * sizeof *t->jobs);
    t->headers = malloc(room + 1);
    if (t->jobs == NULL || t->headers == NULL) {
        free_all(t);
        return jobs;
    }
    put_headers(t);
    return t->jobs;
}

void hf_traced_give_up(hf_traced *t)
{
    free_all(t);
}

/* ---- the spans ---- */

static void begin_span(hf_span *span, const hf_producer *producer,
                       const hf_traceparent *self, uint64_t begun_ns, hf_err err)
{
    *span = (hf_span){.size = sizeof *span,
                      .kind = HF_SPAN_ENQUEUE,
                      .start_ns = hf_span_unix_ns(begun_ns),
                      .end_ns = hf_span_unix_ns(hf_boot_ns()),
                      .client = producer->id,
                      .error_type = err == HF_OK ? NULL : hf_err_name(err)};
    hf_span_ref_set(&span->self, self);
    hf_span_server_put(span, &producer->server);
}

static void tell(const hf_producer *producer, const hf_span *span)
{
    producer->tracer.on_span(span, producer->tracer.arg);
}

/* Of the n jobs that share a span. */
static void tell_jobs(const hf_traced *t, size_t from, size_t n, hf_err err,
                      const hf_enqueue_result *results)
{
    hf_span span;
    hf_traceparent parent;
    const hf_job *first = &t->given[from];
    begin_span(&span, t->producer, &t->spans[from], t->begun_ns, err);
    span.queue = hf_check_job_queue(first);
    span.jobs = (uint32_t)n;
    for (size_t i = from; i < from + n; i++)
        span.body_bytes += t->given[i].payload_len;
    if (find_parent(first, &parent))
        memcpy(span.parent_id, parent.span_id, sizeof span.parent_id);
    if (n == 1) {
        span.type = first->type;
        span.id =
            results != NULL && results[from].id[0] != '\0' ? results[from].id : first->id;
    }
    tell(t->producer, &span);
}

static bool same_span(const hf_traceparent *one, const hf_traceparent *two)
{
    return memcmp(one->span_id, two->span_id, sizeof one->span_id) == 0;
}

void hf_traced_end(hf_traced *t, hf_err err, const hf_enqueue_result *results)
{
    for (size_t i = 0, n; t->spans != NULL && i < t->n; i += n) {
        for (n = 1; i + n < t->n && same_span(&t->spans[i], &t->spans[i + n]);)
            n++;
        if (t->spans[i].sampled)
            tell_jobs(t, i, n, err, results);
    }
    free_all(t);
}

/* ---- of a call with a callback ---- */

struct hf_traced_cb {
    hf_producer *producer;
    hf_traceparent self, parent;
    bool is_child;
    uint64_t begun_ns;
    size_t body_bytes;
    char queue[HF_ID_SIZE], type[HF_ID_SIZE];
    hf_enqueue_cb cb;
    void *arg;
};

struct hf_traced_cb *hf_traced_cb_new(const hf_traced *t, hf_enqueue_cb cb, void *arg)
{
    if (t->spans == NULL)
        return NULL;
    struct hf_traced_cb *traced = malloc(sizeof *traced);
    if (traced == NULL)
        return NULL;
    const hf_job *job = &t->given[0];
    *traced = (struct hf_traced_cb){.producer = t->producer,
                                    .self = t->spans[0],
                                    .begun_ns = t->begun_ns,
                                    .body_bytes = job->payload_len,
                                    .cb = cb,
                                    .arg = arg};
    traced->is_child = find_parent(job, &traced->parent);
    (void)snprintf(traced->queue, sizeof traced->queue, "%s", hf_check_job_queue(job));
    (void)snprintf(traced->type, sizeof traced->type, "%s", job->type);
    return traced;
}

void hf_traced_cb(const hf_enqueue_result *result, const char *detail, void *traced_cb)
{
    struct hf_traced_cb *traced = traced_cb;
    hf_span span;
    bool there = result->err == HF_OK || result->err == HF_EXISTS;
    begin_span(&span, traced->producer, &traced->self, traced->begun_ns,
               there ? HF_OK : result->err);
    span.queue = traced->queue;
    span.type = traced->type;
    span.id = result->id;
    span.jobs = 1;
    span.body_bytes = traced->body_bytes;
    if (traced->is_child)
        memcpy(span.parent_id, traced->parent.span_id, sizeof span.parent_id);
    tell(traced->producer, &span);
    if (traced->cb != NULL)
        traced->cb(result, detail, traced->arg);
    free(traced);
}
