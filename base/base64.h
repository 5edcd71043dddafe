/* base64.h - RFC 4648, section 4: with padding, without spaces or line ends. */
#ifndef HF_BASE_BASE64_H
#define HF_BASE_BASE64_H

#include <stdbool.h>
#include <stddef.h>

/* Writes at most len / 4 * 3 bytes; *n says how many. False: it is not base64. */
bool hf_base64_decode(const char *text, size_t len, unsigned char *out, size_t *n);

/* Allocated, with a NUL, owned by the caller. NULL: out of memory. */
char *hf_base64_encode(const void *bytes, size_t len);

#endif
