/* trace.h - spans: what a system for tracing is told about jobs.
 *
 * A producer makes one span `enqueue` for each request, and a worker two for each run of
 * a job: `process`, from its claim to its verdict, and `settle`, from the verdict to the
 * answer of Redis. The library only makes them; a tracer takes them: a function of the
 * program, which gives them to its own SDK. The commands have a tracer that sends them by
 * OTLP (docs/traces.md).
 *
 * The trace of a job travels in its header "traceparent". Whether a trace is recorded was
 * decided by the caller that began it; `sample` is for jobs without one. */
#ifndef HOLDFAST_TRACE_H
#define HOLDFAST_TRACE_H

#include <stddef.h>
#include <stdint.h>

#include "holdfast/struct.h"

typedef enum hf_span_kind {
    HF_SPAN_ENQUEUE, /* from the call to its answer */
    HF_SPAN_PROCESS, /* from the claim to the verdict */
    HF_SPAN_SETTLE   /* from the verdict to the answer */
} hf_span_kind;

typedef struct hf_span_ref {
    uint8_t trace_id[16], span_id[8];
} hf_span_ref;

enum { HF_SPAN_LINKS = 2 };

/* All text is borrowed until the call returns. A NULL or 0 says nothing, unless it says
 * otherwise here. */
typedef struct hf_span {
    size_t size;
    hf_span_kind kind;
    uint32_t n_links;
    hf_span_ref self;
    uint8_t parent_id[8];             /* of the same trace; zeros: the span begins it */
    hf_span_ref links[HF_SPAN_LINKS]; /* the job's trace, if it is not this one; the run
                                         before, of which this one is a retry */
    int64_t start_ns, end_ns;         /* Unix */
    const char *queue;
    const char *type, *id;      /* of the job; of several: NULL */
    const char *client;         /* the worker, or the producer */
    const char *server_address; /* of Redis: a host, or the path of a socket */
    const char *outcome;        /* of PROCESS: as in the worker's log */
    const char *error_type;     /* what failed, as a class: "timeout", "SMTPServerBusy" */
    uint64_t body_bytes;        /* of the payload, also 0 */
    uint64_t fence;             /* of the run */
    int64_t wait_ms;            /* of PROCESS: from due to claimed, also 0 */
    uint32_t server_port;
    uint32_t jobs;    /* of ENQUEUE: how many */
    uint32_t attempt; /* of the run: 1 the first time; */
    uint32_t run;     /* and with the crashes before it */
} hf_span;

/* What the trace of a job is for the span `process`. */
typedef enum hf_trace_link {
    HF_TRACE_CHILD, /* its own: the span is a child */
    HF_TRACE_LINK   /* another one, to which it has a link */
} hf_trace_link;

/* Zero means the default. */
typedef struct hf_tracer {
    size_t size; /* HF_TRACER_INIT */
    /* Called from the thread of a worker's loop, and from any thread that enqueues or
     * turns a producer's loop, so it must be quick, and call neither. */
    void (*on_span)(const hf_span *span, void *arg);
    /* How many spans were lost. Any thread; may be NULL. */
    uint64_t (*dropped)(void *arg);
    void *arg;
    double sample; /* the part of the jobs without a trace that begin one: 0..1 */
    hf_trace_link link;
    uint32_t unused;
} hf_tracer;
#define HF_TRACER_INIT HF_STRUCT_INIT(hf_tracer)

#endif
