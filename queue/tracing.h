/* tracing.h - what producers and workers share of holdfast/trace.h: a tracer, new traces,
 * and where Redis is. */
#ifndef HF_QUEUE_TRACING_H
#define HF_QUEUE_TRACING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/traceparent.h"
#include "holdfast/error.h"
#include "holdfast/trace.h"
#include "redis/url.h"

/* Takes a caller's tracer; NULL: none, and out->on_span is NULL. HF_INVALID. */
HF_MUSTCHECK hf_err hf_tracer_in(hf_tracer *out, const hf_tracer *theirs,
                                 char detail[HF_DETAIL_SIZE]);
static inline bool hf_tracer_is_on(const hf_tracer *tracer)
{
    return tracer->on_span != NULL;
}

/* Whether a new trace is recorded. Its id decides, so all that make the same id decide
 * alike. */
bool hf_tracer_samples(const hf_tracer *tracer, const uint8_t trace_id[16]);

/* An id of `len` bytes (8 or 16) out of texts: the same each time, and never zeros. */
void hf_trace_id_of(uint8_t *out, size_t len, const char *const *texts, size_t n);

void hf_span_ref_set(hf_span_ref *out, const hf_traceparent *from);
/* The host and port, or the path, of a Redis that has one address. */
typedef struct hf_span_server {
    char address[HF_URL_HOST_MAX + 1]; /* "": it has none */
    uint16_t port;
} hf_span_server;
void hf_span_server_set(hf_span_server *out, const hf_url *url);
void hf_span_server_put(hf_span *span, const hf_span_server *server);
/* Unix ns of a moment of CLOCK_BOOTTIME. */
int64_t hf_span_unix_ns(uint64_t boot_ns);

#endif
