/* wait.h - one wait for the end of a job: what it knows, and how it looks. */
#ifndef HF_ADMIN_WAIT_H
#define HF_ADMIN_WAIT_H

#include "admin/look.h"

typedef struct hf_wait {
    hf_queue queue; /* as soon as the job was seen, its shard */
    const char *id;
    uint64_t until_ns;   /* its deadline */
    int64_t accepted_ms; /* of the job; 0: the one that this wait sees first */
    int64_t alive_ms;    /* when the job was known to be there; 0: never */
    uint64_t noted_in;   /* the life of its Redis in which it was noted; 0: none */
    bool seen;           /* by this wait */
    bool not_permitted;  /* to be told: it has to ask */
    /* Of a job that is done: */
    hf_result_kind kind;
    void *result; /* owned */
    size_t len;
} hf_wait;

/* HF_OK: it is done. HF_RUNNING: it waits or runs; then, if the
 * admin has a hearing, its client is informed of the end. Else as hf_admin_wait(). */
HF_MUSTCHECK hf_err hf_wait_look(hf_admin *admin, hf_wait *w);

/* Whether a later look may say more than this fault. */
bool hf_wait_goes_on(hf_err err);

/* The wait is over before the job has ended: its client is not told any more. That takes
 * a moment (HF_GIVE_UP_MS) at most. False: it could not be said. */
enum { HF_GIVE_UP_MS = 300 };
bool hf_wait_give_up(hf_admin *admin, hf_wait *w);

/* The deadline has come; err and the admin's detail are of the last look. */
HF_MUSTCHECK hf_err hf_wait_timed_out(hf_admin *admin, hf_err err);

#endif
