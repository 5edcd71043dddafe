/* otlp.h - spans as a request of OTLP in JSON, with the attributes of the semantic
 * conventions for messaging. Never anything of a payload. */
#ifndef HF_TRACE_OTLP_H
#define HF_TRACE_OTLP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "holdfast/trace.h"

/* The request begins, with the process that sends it; one span; its end. */
void hf_otlp_begin(hf_buf *out, const char *service);
void hf_otlp_add(hf_buf *out, const hf_span *span, bool first);
void hf_otlp_end(hf_buf *out);

/* How many spans a collector has refused, by its answer. */
uint64_t hf_otlp_rejected(const char *answer, size_t len);

#endif
