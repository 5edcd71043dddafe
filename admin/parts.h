/* parts.h - a queue that is divided into shards, as one queue (queue/shards.h).
 *
 * A call asks the queue. If Redis answers that it is divided (HF_SHARDED), the call asks
 * its shards, and puts their answers together. So a call learns of the shards at no cost
 * for other queues. */
#ifndef HF_ADMIN_PARTS_H
#define HF_ADMIN_PARTS_H

#include "admin/ask.h"

typedef struct hf_part {
    const hf_queue *queue; /* of the name of the whole */
    const char *tag;       /* of a shard */
    unsigned i, n;         /* the i-th of n shards; n 0: a queue that is not divided */
} hf_part;

typedef hf_err (*hf_part_fn)(hf_admin *admin, const hf_part *part, void *arg);

/* Does something with a queue, or with each of its shards, until one fails; the detail
 * names that one. */
HF_MUSTCHECK hf_err hf_admin_in_parts(hf_admin *admin, const hf_queue *queue,
                                      hf_part_fn fn, void *arg);

/* The same for what changes a setting: when one fails, the others are changed all the
 * same. Gives the first failure. */
HF_MUSTCHECK hf_err hf_admin_in_all_parts(hf_admin *admin, const hf_queue *queue,
                                          hf_part_fn fn, void *arg);

/* Does something with a job: in the queue, or in each of its shards until one answers
 * something else than HF_GONE. That of the id is asked first. One that cannot be asked is
 * the answer only if no other shard has the job. */
HF_MUSTCHECK hf_err hf_admin_in_part_of(hf_admin *admin, const hf_queue *queue,
                                        const char *id, hf_in_queue_fn fn, void *arg);

/* The first shard that could not be asked. */
typedef struct hf_part_fault {
    hf_err err; /* HF_OK: there was none */
    char why[HF_DETAIL_SIZE];
    bool away; /* a node could not be asked: this one, or with "" the only one */
    char place[HF_URL_PLACE_SIZE];
} hf_part_fault;

/* Whether the shard is at the node that is away: to ask it would cost a deadline. */
bool hf_part_is_there(hf_admin *admin, const hf_queue *shard, const hf_part_fault *fault);
/* Takes the reason from the call's detail. */
void hf_part_note_fault(hf_admin *admin, const hf_queue *shard, hf_err err,
                        hf_part_fault *fault);

/* The shard that is asked k-th for an id. */
unsigned hf_part_for(const hf_shards *shards, const char *id, unsigned k);

/* The figures of a queue that is not divided, or of a shard. */
HF_MUSTCHECK hf_err hf_stats_of(hf_admin *admin, const hf_queue *queue,
                                hf_queue_stats *out);

/* The node that has the queue; NULL: there is no cluster, or none has it. */
const char *hf_admin_place(hf_admin *admin, const hf_queue *queue);

/* The failure is of this shard. Gives err back. */
hf_err hf_admin_name_shard(hf_admin *admin, hf_err err, const char *tag);

#endif
