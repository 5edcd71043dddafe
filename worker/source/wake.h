/* wake.h - waiting without polling: the batons and their timers. Belongs to the loop. */
#ifndef HF_WORKER_SOURCE_WAKE_H
#define HF_WORKER_SOURCE_WAKE_H

#include "base/machine.h"
#include "worker/worker.h"

/* What claiming and waiting know of the worker as a whole. */
typedef struct hf_wake {
    uint64_t open_at_ns; /* the next connection that blocks: they come one by one */
    uint64_t worked_ns;  /* when a job was held last */
    uv_poll_t alarm;   /* of the times of batons: a timer of the loop has whole ms only */
    int alarm_fd;      /* -1: closed */
    uint64_t alarm_ns; /* for which it is set; 0: it is not */
    char machine[HF_MACHINE_SIZE];
} hf_wake;

HF_MUSTCHECK hf_err hf_wake_new(hf_worker *w);
void hf_wake_free(hf_worker *w);
HF_MUSTCHECK hf_err hf_wake_open(hf_worker *w);    /* its alarm */
HF_MUSTCHECK hf_err hf_wake_connect(hf_worker *w); /* to a plain Redis only */
void hf_wake_start(hf_worker *w);
void hf_wake_close(hf_worker *w);
/* Blocks on the batons of the queues, if a job could start and no claim is due or under
 * way. Ends a blocking call if no job could start, or if it names the wrong queues. Gives
 * back batons that cannot be used. */
void hf_wake_pump(hf_worker *w);
/* Sets the alarm to the earliest of the owned batons' times and the ends of backoffs. */
void hf_wake_timers(hf_worker *w);
bool hf_wake_blocks(const hf_worker *w); /* on all that it can block on */
/* Nothing of its own is under way where Redis answers, so no baton goes down with a
 * connection. */
bool hf_wake_idle(const hf_worker *w);

#endif
