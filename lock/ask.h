/* ask.h - one request whose caller waits. */
#ifndef HF_LOCK_ASK_H
#define HF_LOCK_ASK_H

#include "lock/client.h"

/* One request whose caller waits. Faults that did nothing are tried again until the end.
 */
typedef struct hf_lock_ask {
    hf_task task;
    struct hf_lock_ask *next;
    hf_lock_client *locks;
    hf_lock *lock;    /* it is about this one, which is not left, nor freed, before; or */
    hf_server *redis; /* for this one (borrowed); or */
    unsigned slot;    /* about keys in this one */
    hf_lock_node *node; /* that it was for last */
    hf_node_backoff backoff;
    hf_run_waiter *waiter; /* or */
    void (*on_end)(struct hf_lock_ask *ask);
    bool calls_back; /* also where its caller waits: `read` calls a callback */
    hf_err (*send)(struct hf_lock_ask *ask, hf_client *client, hf_answer_cb cb,
                   void *arg);
    hf_err (*read)(struct hf_lock_ask *ask, const hf_answer *answer);
    /* With HF_OK, and when the replicas that `lock` waits for have it; NULL: nothing. */
    hf_err (*take)(struct hf_lock_ask *ask);
    hf_confirm confirm; /* while they are asked */
    void *arg;
    uint64_t until_ns, due_ns, sent_ns;
    bool in_flight;
    bool repeats; /* executed twice, it does its work once: so it is sent again also when
                     its answer was lost */
    bool unsure;  /* that has happened */
    bool writes_what_must_stay; /* HF_POLICY where it may be evicted */
    hf_err err;                 /* of its end, or until then of the last refusal */
    char detail[HF_DETAIL_SIZE];
} hf_lock_ask;

/* Waits for it; gives its err. */
HF_MUSTCHECK hf_err hf_ask_wait(hf_lock_ask *ask, hf_lock_client *locks,
                                char detail[HF_DETAIL_SIZE]);
/* on_end is called in any case if this gives HF_OK. */
HF_MUSTCHECK hf_err hf_ask_begin(hf_lock_ask *ask, hf_lock_client *locks);
void hf_ask_pump(hf_lock_client *locks, uint64_t now_ns);
uint64_t hf_ask_due_ns(const hf_lock_client *locks);
/* It was released: its requests that are not under way are not sent again. */
void hf_ask_released(const hf_lock *lock);
/* Ends the requests that are not under way. node NULL: of all nodes. */
void hf_ask_end_all(hf_lock_client *locks, const hf_lock_node *node, hf_err err,
                    const char *detail);

#endif
