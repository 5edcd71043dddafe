/* traceparent.h - a place in a trace, as the W3C Trace Context writes it:
 *
 *   00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
 *
 * the trace, the span, and whether the trace is recorded. Programs hand it on as the
 * member "traceparent" of a JSON object of texts. */
#ifndef HF_BASE_TRACEPARENT_H
#define HF_BASE_TRACEPARENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HF_TRACEPARENT_LEN = 55, HF_TRACEPARENT_SIZE = HF_TRACEPARENT_LEN + 1 };

typedef struct hf_traceparent {
    uint8_t trace_id[16], span_id[8]; /* none is all zeros */
    bool sampled;
} hf_traceparent;

/* False: it is none, which the standard says to ignore. Later versions are read as far as
 * this one goes. */
bool hf_traceparent_read(const char *text, size_t len, hf_traceparent *out);
void hf_traceparent_write(const hf_traceparent *traceparent,
                          char out[HF_TRACEPARENT_SIZE]);

/* The one in an object of texts, which is JSON (len 0: there is no object). */
bool hf_traceparent_find(const char *object, size_t len, hf_traceparent *out);
/* Writes the object with this traceparent instead of its own, or beside its members.
 * Returns its length without the NUL; 0: it needs more than `size` bytes. */
size_t hf_traceparent_put(const char *object, size_t len,
                          const char traceparent[HF_TRACEPARENT_SIZE], char *out,
                          size_t size);

#endif
