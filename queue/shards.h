/* shards.h - a queue that is divided into shards.
 *
 * A shard is a queue of its own for all scripts of jobs: its hash tag is `wide/3-17`, so
 * its keys begin with `hf:{wide/3-17}:`. No queue has such a tag, because a slash cannot
 * be in a queue's name. The digits at the end are the first ones whose slot lies in the
 * i-th of N equal ranges, so the shards spread evenly over the nodes of a cluster.
 *
 * The queue itself keeps no jobs then. Its `meta` tells how many shards there are, and
 * their tags, as one text: "8 wide/0-3 wide/1-0 ...". Scripts that would be wrong there
 * refuse (HF_SHARDED), and their words contain this text. So a client learns of the
 * shards when it needs them, and any other queue costs nothing.
 *
 * A job with a unique key belongs to the shard of its key, another one with an id of its
 * own to the shard of its id. A made id does not tell its shard. */
#ifndef HF_QUEUE_SHARDS_H
#define HF_QUEUE_SHARDS_H

#include "queue/ops.h"

enum {
    HF_SHARDS_MIN = 2,
    HF_SHARDS_MAX = 64,
    HF_SHARDED_NAME_MAX = 120, /* bytes of the queue's name: its tags have room then */
    HF_SHARDS_TEXT_SIZE = 8 + HF_SHARDS_MAX * HF_ID_SIZE
};

typedef struct hf_shards {
    unsigned n; /* 0: it is not divided */
    char tags[HF_SHARDS_MAX][HF_ID_SIZE];
} hf_shards;

/* The shards of a queue that is divided into n now. HF_INVALID: n or the name has another
 * size. */
HF_MUSTCHECK hf_err hf_shards_make(hf_shards *out, const char *queue, unsigned n);

void hf_shards_write(const hf_shards *shards, char out[HF_SHARDS_TEXT_SIZE]);
/* "" is none. HF_PROTO: it cannot be read, and *out has none. */
HF_MUSTCHECK hf_err hf_shards_read(hf_shards *out, const char *text);
/* From the words of HF_SHARDED, which has at least two. */
HF_MUSTCHECK hf_err hf_shards_refused(hf_shards *out, const char *words);

/* What tells the shard of a job: its unique key, or else the id that its caller chose;
 * NULL: nothing does. */
const char *hf_job_shard_text(const hf_job *job);
/* The shard of such a text: CRC-16, as of slots. */
unsigned hf_shard_of_id(const char *id, unsigned n);

/* The i-th shard as a queue. Its name is that of the whole. */
void hf_shards_queue(const hf_shards *shards, const hf_queue *whole, unsigned i,
                     hf_queue *out);

/* What the i-th of n shards has of a limit of at least n. */
uint32_t hf_shard_max_running(uint32_t max_running, unsigned i, unsigned n);

/* ---- the script ---- */

/* Divides the queue; wanted NULL: only asks. Made twice it is the same. */
HF_MUSTCHECK hf_err hf_op_shards(hf_client *client, const hf_queue *queue,
                                 int64_t not_after, const hf_shards *wanted,
                                 hf_answer_cb cb, void *arg);

typedef struct hf_divided {
    int64_t now_ms;
    hf_shards shards; /* as they are now, also if others were wanted */
    char why[8];      /* it was not divided: "jobs" (it has some), "paused", "limits" (a
                         command has set some); else "" */
} hf_divided;
HF_MUSTCHECK hf_err hf_divided_read(const hf_answer *answer, hf_divided *out);

/* Whether it has `wanted` shards now; else `why` is a sentence. */
bool hf_divided_is(const hf_divided *divided, unsigned wanted, char why[HF_DETAIL_SIZE]);

#endif
