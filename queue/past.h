/* past.h - the history of a queue (queue/lua/past.lua): what ended in a step of time, of
 * one type, as numbers and as the text that Redis keeps. */
#ifndef HF_QUEUE_PAST_H
#define HF_QUEUE_PAST_H

#include "base/buf.h"
#include "holdfast/admin.h"
#include "queue/ops.h"

enum {
    HF_PAST_PARTS = 8,       /* types of one request */
    HF_PAST_TYPES = 64,      /* that have a place of their own in a step */
    HF_PAST_STEPS = 60,      /* that one request reads */
    HF_PAST_TEXT_MAX = 2560, /* bytes of one type, with the NUL */
};
#define HF_PAST_OTHERS "*" /* all other types, and jobs of an unknown type */

typedef struct hf_past_sums {
    int64_t done, failed, dead; /* attempts, attempts, jobs */
    int64_t run_ms, wait_ms;
    int64_t runs[HF_HISTORY_BUCKETS], waits[HF_HISTORY_BUCKETS];
} hf_past_sums;

/* The place of a time among the buckets: the least whose bound is not below it. */
unsigned hf_past_bucket(uint64_t ns);
/* The bound of a bucket, 2^(n/2) ms; of the last one INFINITY. */
double hf_past_bound_ms(unsigned bucket);
/* The time, ms, that a part (0 to 1) of them does not exceed; 0: there is none. */
double hf_past_percentile(const int64_t counts[HF_HISTORY_BUCKETS], double part);

void hf_past_write(hf_buf *buf, const hf_past_sums *sums);
void hf_past_add(hf_past_sums *sums, const hf_past_sums *more);
void hf_past_add_text(hf_past_sums *sums, const char *text); /* what it can read of it */

typedef struct hf_past_part {
    const char *type, *sums;
} hf_past_part;

typedef struct hf_past_args {
    const char *worker;
    uint64_t number; /* rising for each worker and queue. The same again: it was sent
                        before, and counts once */
    int64_t minute;  /* since 1970, on Redis's clock */
    int64_t keep_ms;
} hf_past_args;

/* Adds 1 to HF_PAST_PARTS types to a minute. Any answer that is HF_OK will do. */
HF_MUSTCHECK hf_err hf_op_past(hf_client *client, const hf_queue *queue,
                               const hf_past_args *args, const hf_past_part *parts,
                               size_t n, hf_answer_cb cb, void *arg);
HF_MUSTCHECK hf_err hf_past_read(const hf_answer *answer, int64_t *now_ms);

#endif
