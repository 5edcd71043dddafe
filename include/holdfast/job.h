/* job.h - what a job is: its names and their limits, its times, its options.
 * <holdfast/producer.h> enqueues it. */
#ifndef HOLDFAST_JOB_H
#define HOLDFAST_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holdfast/struct.h"

enum {
    HF_NAME_MAX = 128, /* bytes of a queue's name, a type or an id: at least one
                          character of [A-Za-z0-9._:-] */
    HF_ID_SIZE = HF_NAME_MAX + 1, /* bytes of an id with its NUL */
    HF_BATCH_JOBS = 10000,        /* jobs in one call of a producer */
    HF_BATCH_BYTES = 64 << 20,    /* bytes of records in such a call: 64 MiB */
    HF_PAYLOAD_DEFAULT = 1 << 20, /* default limit of a payload in bytes: 1 MiB */
    HF_PAYLOAD_CEILING = 63 << 20 /* largest limit that can be set: 63 MiB */
};

/* The longest delay or other duration is 100 years (36,525 days); the latest time is the
 * end of the year 9999. A call refuses a larger value. A larger delay that a handler or a
 * program asks for is cut. Sums of both are exact as scores in Redis (below 2^53). */
#define HF_DELAY_MAX_MS INT64_C(3155760000000)
#define HF_TIME_MAX_MS INT64_C(253402300799999)
/* How long the history of a queue is kept at most (hf_admin_history()). */
#define HF_HISTORY_MAX_MS INT64_C(172800000)

/* Waiting jobs of a higher priority start first. But every eighth job that a queue hands
 * out is the oldest one of all priorities, so no job waits for ever. */
typedef enum hf_priority {
    HF_PRIORITY_NORMAL,
    HF_PRIORITY_HIGH,
    HF_PRIORITY_LOW
} hf_priority;

/* What happens to a job that did not start in time (start_within_ms). */
typedef enum hf_expired {
    HF_EXPIRED_DROP, /* it is removed, and counted */
    HF_EXPIRED_DEAD  /* it is dead, with the reason "expired" */
} hf_expired;
/* When a job frees its unique key. */
typedef enum hf_unique_until {
    HF_UNIQUE_UNTIL_END,   /* when it is done, dead, or removed */
    HF_UNIQUE_UNTIL_START, /* when it starts; it takes the key again to wait for a retry,
                              if the key is free */
    HF_UNIQUE_UNTIL_DONE   /* when it is done or removed: a dead job keeps it */
} hf_unique_until;

/* What to do with a job whose unique key another job holds. */
typedef enum hf_on_conflict {
    HF_ON_CONFLICT_SKIP,    /* do not accept it; its result names the holder */
    HF_ON_CONFLICT_REPLACE, /* a holder that waits keeps its id and takes the payload, due
                            time and options of the new job; with any other holder as NEXT
                          */
    HF_ON_CONFLICT_NEXT,    /* park it until the holder has ended. A job that is parked
                            already takes its payload, due time and options instead. If
                            the holder goes back to wait, the parked job takes its place */
    HF_ON_CONFLICT_CANCEL   /* as NEXT, and ask a running holder to end */
} hf_on_conflict;

enum {
    HF_UNIQUE_MAX = 256,  /* bytes of a unique key: any text in UTF-8 */
    HF_HEADERS_MAX = 4096 /* bytes of the headers of a job */
};

/* Zero means the default. All text and bytes are copied before the call returns. */
typedef struct hf_job {
    size_t size;           /* HF_JOB_INIT */
    const char *queue;     /* NULL: "default" */
    const char *type;      /* required */
    const void *payload;   /* any bytes */
    size_t payload_len;    /* bytes */
    const char *id;        /* NULL: the library makes one of 14 characters; ids rise */
    int64_t delay_ms;      /* counted from its arrival in Redis; 0..HF_DELAY_MAX_MS */
    int64_t at_ms;         /* not before this Unix time in ms, on Redis's clock; 0: now;
                              ..HF_TIME_MAX_MS; not together with delay_ms */
    uint32_t max_attempts; /* 0: as the worker is configured */
    uint32_t timeout_ms;   /* 0: as the worker's handler is configured */
    hf_priority priority;
    hf_expired expired; /* only with start_within_ms */
    int64_t keep_ms;    /* how long the job is kept when it is done, with its result, at
                           most HF_DELAY_MAX_MS; 0: as its handler or its queue says */
    int64_t start_within_ms; /* it expires if it has not started this long after its first
                                due time; a retry never expires. 0: never;
                                ..HF_DELAY_MAX_MS */
    const char *unique;      /* NULL: none; at most one job of its queue holds a key */
    hf_unique_until unique_until; /* these need `unique` */
    hf_on_conflict on_conflict;
    int64_t unique_for_ms; /* 0: none; the key is taken for this long after the job was
                              accepted, even if the job is done earlier */
    int64_t debounce_ms;   /* 0: none; quiet time: the job becomes due this long after the
                              latest job with its key, which replaces the earlier ones */
    int64_t max_wait_ms;   /* but never later than this after the first one; required */
    int64_t throttle_ms; /* 0: none; as unique_for_ms, with SKIP or NEXT: at most one job
                            in this time */
    const char *on_dead; /* the type of a job that is enqueued when this one dies; its
                            payload describes the death in JSON. NULL: none */
    bool awaited;        /* hf_job_wait() will ask for its end, which Redis then
                            remembers for a day, also if the job ends before */
    bool replace_dead;   /* a dead job with this id is removed, and this one accepted */
    const char *headers; /* what the code around its handler needs, such as a tenant or a
                            trace: one JSON object whose values are texts, as
                            {"tenant":"7"}, at most HF_HEADERS_MAX bytes. NULL: none */
} hf_job;
#define HF_JOB_INIT HF_STRUCT_INIT(hf_job)

#endif
