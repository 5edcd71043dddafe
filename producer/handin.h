/* handin.h - the way of a call that waits into the inbox.
 *
 * A small call joins the open batch of its queue. A larger one makes its batches by
 * itself, without the lock, so that many threads can do so at a time, and the engine's
 * thread has nothing left to do but to send them. */
#ifndef HF_PRODUCER_HANDIN_H
#define HF_PRODUCER_HANDIN_H

#include "producer/handle.h"
#include "producer/waiter.h"

typedef struct hf_handin {
    hf_producer *producer;
    hf_intake in;
    bool one_queue; /* all jobs are of one */
    hf_waiter *waiter;
    uint64_t number, first; /* of a numbered call, else 0 */
    bool ready;             /* out: something can perhaps be sent */
} hf_handin;

/* HF_OK: the waiter will be told once for each of its parts, and perhaps something can
 * be sent. HF_CLOSED, HF_FULL,
 * HF_INVALID (the other kind of numbers), HF_NOMEM: nothing was taken. */
HF_MUSTCHECK hf_err hf_hand_in(hf_handin *handin);

#endif
