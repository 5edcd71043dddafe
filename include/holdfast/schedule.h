/* schedule.h - jobs that come again and again.
 *
 * A schedule has ticks: times at which a job is due. Each tick leads to exactly one job,
 * however many workers there are. Schedules are in Redis, in the queue of their jobs. A
 * worker writes those of its options (hf_worker_opts); hf_admin_schedule_put() writes one
 * on request. */
#ifndef HOLDFAST_SCHEDULE_H
#define HOLDFAST_SCHEDULE_H

#include <stddef.h>
#include <stdint.h>

#include "holdfast/job.h"
#include "holdfast/struct.h"

/* What to do about missed ticks. A tick is missed if the next one was due before a worker
 * could take it, or if it is more than a minute late. ONCE: run a job for the newest.
 * ALL: for each within catch_up_ms, at most 1000. SKIP: for none. */
typedef enum hf_missed { HF_MISSED_ONCE, HF_MISSED_ALL, HF_MISSED_SKIP } hf_missed;

/* What a tick does while the job of the last tick waits, is retried or runs. SKIP: the
 * tick makes no job. ALLOW: it makes a job. CANCEL: it makes a job and cancels the
 * earlier one. */
typedef enum hf_overlap {
    HF_OVERLAP_SKIP,
    HF_OVERLAP_ALLOW,
    HF_OVERLAP_CANCEL
} hf_overlap;

/* Zero means the default. All text is borrowed for the call. */
typedef struct hf_schedule {
    size_t size;       /* HF_SCHEDULE_INIT */
    const char *id;    /* a name; one schedule of a queue has it */
    const char *queue; /* NULL: "default" */
    const char *cron;  /* an expression of five or six fields; or */
    int64_t
        every_ms;   /* a period of 100 ms or more, from the epoch on, or from start_ms */
    const char *tz; /* of cron: "Europe/Berlin"; NULL: UTC */
    const char *type; /* of its jobs */
    const void *payload;
    size_t payload_len;
    hf_missed missed;
    hf_overlap overlap;
    int64_t catch_up_ms; /* default 1 h; at most 30 days */
    int64_t
        jitter_ms; /* each job is due up to this much later, at random; at most 1 day */
    int64_t start_ms, end_ms; /* no tick before, none after; Unix ms; 0: no bound */
    int64_t limit;            /* jobs that it makes in all; 0: no limit */
    int64_t rev;              /* of a worker's schedules: one with a lower number does not
                                 replace it; default 0 */
    hf_priority priority;     /* of its jobs, as all below: see hf_job */
    hf_expired expired;
    uint32_t max_attempts, timeout_ms;
    int64_t keep_ms, start_within_ms;
    const char *on_dead;
} hf_schedule;
#define HF_SCHEDULE_INIT HF_STRUCT_INIT(hf_schedule)

#endif
