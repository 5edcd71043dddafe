/* hour.h - the last hour of several queues together, minute by minute. */
#ifndef HF_DASHBOARD_HOUR_H
#define HF_DASHBOARD_HOUR_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum { HF_HOUR_MINUTES = 60, HF_HOUR_ROOM = 64 };

/* A minute. All zero: nothing was added. */
typedef struct hf_hour_minute {
    int64_t number;                    /* since 1970 */
    bool known;                        /* how a queue was then: the next three */
    int64_t ready, oldest_ms, running; /* oldest_ms: the longest */
    int64_t done, failed, dead;
} hf_hour_minute;

typedef struct hf_hour {
    hf_hour_minute at[HF_HOUR_ROOM]; /* by number */
    int64_t last;                    /* the last minute that all queues have */
} hf_hour;

/* Adds the minutes of a queue, by number. As it was seen last before a minute it was
 * then, too. */
void hf_hour_add(hf_hour *hour, const hf_hour_minute of[HF_HOUR_ROOM]);

/* {ready: [..], oldest_ms, running, done, failed, dead}, the oldest minute first; null
 * where it is not known. */
json_t *hf_hour_json(const hf_hour *hour);

#endif
