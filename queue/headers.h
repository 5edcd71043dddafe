/* headers.h - what a job carries beside its payload, for the code around its handler: a
 * flat object of texts, as {"tenant":"7"}. */
#ifndef HF_QUEUE_HEADERS_H
#define HF_QUEUE_HEADERS_H

#include <stdbool.h>
#include <stddef.h>

#define HF_HEADERS_RULE "one JSON object whose values are texts, at most 4096 bytes"

/* Whether it is HF_HEADERS_RULE. */
bool hf_headers_ok(const char *text, size_t len);

#endif
