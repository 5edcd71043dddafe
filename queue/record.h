/* record.h - a job as Redis keeps it: one line of JSON, a newline, the payload as it is.
 *
 *   {"type":"email.send","created":1700000000000,"attempts":2,"error":"..."}\n<payload>
 *
 * Fields (docs/keys.md): type, and where they are set: v (the version, 1), created (the
 * producer's clock, Unix ms; omitted where the id contains it), cron (the id of its
 * schedule), scheduled (its tick, Unix ms), max_attempts, timeout
 * (ms), attempts, error, failed (Unix ms of the last failure), refused (Unix ms; when a
 * worker first had no handler for its type), died (Unix ms), reason (why it is dead),
 * keep (ms), and the options that the accepting script acts on, such as priority and
 * start_within (hf_record_has_options()); start_by (Unix ms), which it adds to a job that
 * may expire; headers; and alone (a number; from 3 on its next run has its process to
 * itself).
 * Unknown fields are kept by the scripts.
 *
 * A new record has no byte that is not needed: with a payload of 100 bytes and a type of
 * up to 12 it takes 128 bytes in Redis, and the next size is 160. */
#ifndef HF_QUEUE_RECORD_H
#define HF_QUEUE_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "holdfast/job.h"
#include "redis/request.h"

typedef struct hf_record {
    char type[HF_ID_SIZE];
    int64_t created_ms, refused_ms; /* 0: it does not say; it was not refused */
    int64_t start_by_ms;            /* 0: it does not expire */
    bool alone;                     /* its next run has its process to itself */
    uint32_t attempts, max_attempts, timeout_ms;
    hf_priority priority;
    int64_t keep_ms;       /* 0: it does not say */
    int64_t scheduled_ms;  /* the tick of its schedule; 0: none */
    char failed_fence[24]; /* of its last failed attempt; "": it does not say */
    hf_unique_until unique_until;
    /* Owned by the record, "" if none: end with hf_record_done(). The headers are as
     * HF_HEADERS_RULE says. */
    hf_bytes error, unique, on_dead, headers;
    hf_bytes payload;  /* borrowed from the text that was read */
    const char *fault; /* of HF_PROTO: what was expected of the line */
} hf_record;

/* Appends a new job's record (without payload limit checks); created_ms 0: the id tells.
 */
void hf_record_write(hf_buf *out, const hf_job *job, int64_t created_ms);

/* Whether the script enqueue_with must accept it. */
bool hf_record_has_options(const hf_job *job);

/* HF_OK, or HF_PROTO: no reader understands it; what it tells all the same is there, but
 * for its texts. */
HF_MUSTCHECK hf_err hf_record_read(hf_record *out, hf_bytes text);
void hf_record_done(hf_record *record);
/* What the script needs to know of the job when it leaves, "": nothing. Only the script
 * reads it (queue/lua/steps/leaving.lua). */
hf_bytes hf_record_leaving(const hf_record *record);

#endif
