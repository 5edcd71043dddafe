/* format.h - numbers, spans and times in as few columns as an operator needs. */
#ifndef HF_TOP_FORMAT_H
#define HF_TOP_FORMAT_H

#include <stddef.h>
#include <stdint.h>

enum { HF_TOP_FORMAT_SIZE = 24 };

/* "12,788", from 100,000 on "312 k", "1.2 M". All return `out`. */
const char *hf_top_count(int64_t n, char out[HF_TOP_FORMAT_SIZE]);
/* "41s", "7m12s", "5h03m", "3d04h"; "-" below 0. */
const char *hf_top_span(int64_t ms, char out[HF_TOP_FORMAT_SIZE]);
/* A span that may be short: "12ms", "1.2s", then as above; "-" for 0. */
const char *hf_top_short_span(double ms, char out[HF_TOP_FORMAT_SIZE]);
/* "0.4", from 10 on "1512"; "-" below 0, which means not known. */
const char *hf_top_rate(double n, char out[HF_TOP_FORMAT_SIZE]);
/* "0.4", "12.0"; "-" below 0. */
const char *hf_top_percent(double n, char out[HF_TOP_FORMAT_SIZE]);
/* "03:12:07Z" of Unix ms. */
const char *hf_top_clock(int64_t unix_ms, char out[HF_TOP_FORMAT_SIZE]);

/* Names of a list, "a,b", cut where the room ends. */
void hf_top_names(const char *const *list, size_t n, char *out, size_t size);

#endif
