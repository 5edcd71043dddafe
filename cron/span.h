/* span.h - a time in which a zone has one offset. */
#ifndef HF_CRON_SPAN_H
#define HF_CRON_SPAN_H

#include <stdint.h>

/* from <= t < until, in Unix seconds. The neighbours may have the same offset. */
typedef struct hf_zone_span {
    int64_t from, until; /* INT64_MIN and INT64_MAX: no end */
    int32_t offset;      /* seconds that a local clock is ahead of UTC */
} hf_zone_span;

#endif
