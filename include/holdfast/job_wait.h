/* job_wait.h - wait for the ends of jobs, and get their results.
 *
 * An hf_waits has a thread and connections of its own: two for each Redis, of which one
 * announces the ends of jobs at once; in a cluster one for each Redis, and one for each
 * slot with awaited jobs, for 32 slots at a time. A Redis announces them for 256 queues
 * (or shards) at a time; the thread asks for the jobs of others five times a second. A
 * lost announcement costs time, never the answer: the thread also asks for each job once
 * a second (less often if there are many).
 *
 * Redis remembers for a day how a job has ended for which a client waits. So a client may
 * be stopped for long. What has ended before the client looks first is known of jobs that
 * are `awaited` (hf_job), are kept (keep_ms), or are dead; of others it is unknown.
 *
 *     static void on_end(const hf_job_end *end, void *arg)
 *     {
 *         if (end->err == HF_OK)
 *             printf("%s: %.*s\n", end->id, (int)end->len, (const char *)end->result);
 *     }
 *     ...
 *     err = hf_job_wait(waits, "default", id, accepted_ms, 30000, on_end, NULL, detail);
 */
#ifndef HOLDFAST_JOB_WAIT_H
#define HOLDFAST_JOB_WAIT_H

#include <stddef.h>
#include <stdint.h>

#include "holdfast/admin.h"
#include "holdfast/error.h"
#include "holdfast/server.h"
#include "holdfast/struct.h"

typedef struct hf_waits hf_waits;

typedef struct hf_waits_opts {
    size_t size;                  /* HF_WAITS_OPTS_INIT */
    const hf_server_opts *server; /* which Redis; NULL: the defaults. hf_waits_open()
                                     waits for it at most connect_timeout_ms */
} hf_waits_opts;
#define HF_WAITS_OPTS_INIT HF_STRUCT_INIT(hf_waits_opts)

enum { HF_WAITS_MAX = 10000 }; /* at a time */

/* How a job ended. All but the first and the last are told on evidence only: what the
 * end of this very job, by its id and accepted_ms, has left in Redis. */
typedef enum hf_job_outcome {
    HF_JOB_NOT_ENDED, /* the wait ended first: hf_job_end.err says why */
    HF_JOB_DONE,
    HF_JOB_DEAD, /* also if it was retried by hand since */
    HF_JOB_CANCELLED,
    HF_JOB_DELETED, /* or purged */
    HF_JOB_EXPIRED, /* it did not start in time */
    HF_JOB_UNKNOWN  /* it is not there, and nothing tells its end: Redis has lost data,
                       or does not remember the end any more */
} hf_job_outcome;

/* `err` says the same as `outcome`: HF_OK, HF_DEAD (`detail` is its error), HF_CANCEL,
 * HF_DELETED, HF_EXPIRED, HF_GONE. Otherwise the job has not ended. HF_TIMEOUT: at the
 * deadline it waited or ran, or Redis could not be asked; this is told at most a second
 * later. HF_CLOSED: hf_waits_close() came first. Any other: Redis refused for a reason
 * that does not pass. While Redis is away waits go on. All text and bytes are borrowed
 * until the callback returns. */
typedef struct hf_job_end {
    size_t size; /* the library sets it */
    hf_err err;
    const char *queue, *id, *detail;
    hf_result_kind kind; /* of a job that is kept; else HF_RESULT_NONE */
    const void *result;  /* NULL: none */
    size_t len;
    hf_job_outcome outcome;
} hf_job_end;
typedef void (*hf_job_end_cb)(const hf_job_end *end, void *arg);

#ifdef __cplusplus
extern "C" {
#endif

/* The caller owns *out and ends it with hf_waits_close(). What hf_admin_open() returns;
 * HF_SYSTEM. After an error *out is untouched. */
HF_API HF_MUSTCHECK hf_err hf_waits_open(hf_waits **out, const hf_waits_opts *opts,
                                         char detail[HF_DETAIL_SIZE]);

/* From any thread, also from a callback. HF_OK: cb is called exactly once, on the thread
 * of the hf_waits, never from inside this call. accepted_ms, deadline_ms as for
 * hf_admin_wait(). HF_INVALID, HF_FULL (HF_WAITS_MAX), HF_CLOSED, HF_NOMEM: it is not
 * called. */
HF_API HF_MUSTCHECK hf_err hf_job_wait(hf_waits *waits, const char *queue, const char *id,
                                       int64_t accepted_ms, uint32_t deadline_ms,
                                       hf_job_end_cb cb, void *arg,
                                       char detail[HF_DETAIL_SIZE]);

/* Calls the callbacks of all waits that have not ended, then returns. Not from a
 * callback. NULL is fine. */
HF_API void hf_waits_close(hf_waits *waits);

#ifdef __cplusplus
}
#endif

#endif
