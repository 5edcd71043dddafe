/* traced.h - the spans `enqueue` of a producer with a tracer. The trace of a job, or a
 * new one, goes on in its headers: the job then names the span as its parent. Jobs beside
 * each other in a call, of one queue and with the same trace, share a span. */
#ifndef HF_PRODUCER_TRACED_H
#define HF_PRODUCER_TRACED_H

#include "producer/producer.h"

typedef struct hf_traced {
    hf_producer *producer;
    const hf_job *given; /* of the call; borrowed */
    size_t n;
    hf_job *jobs;  /* owned: the same with other headers; NULL: nothing is recorded */
    char *headers; /* owned: theirs */
    hf_traceparent *spans; /* owned, for each job; the same of those that share one */
    uint64_t begun_ns;
} hf_traced;

/* The jobs were checked. Without memory nothing is recorded. Returns the jobs to send:
 * those of the call, or `jobs`. */
const hf_job *hf_traced_begin(hf_traced *out, hf_producer *producer, const hf_job *jobs,
                              size_t n);
/* The jobs of the call are sent as they are: with their headers they are too large. */
void hf_traced_give_up(hf_traced *traced);
/* They were answered, or refused. `results` may be NULL. */
void hf_traced_end(hf_traced *traced, hf_err err, const hf_enqueue_result *results);

/* Of a call with a callback: one that makes the span, and then calls theirs. NULL:
 * nothing is recorded, or no memory. */
struct hf_traced_cb *hf_traced_cb_new(const hf_traced *traced, hf_enqueue_cb cb,
                                      void *arg);
void hf_traced_cb(const hf_enqueue_result *result, const char *detail, void *traced_cb);

#endif
