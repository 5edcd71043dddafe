/* producer.h - what a producer is, for the files that are its public face. */
#ifndef HF_PRODUCER_PRODUCER_H
#define HF_PRODUCER_PRODUCER_H

#include <sys/types.h>

#include "producer/check.h"
#include "producer/requests.h"

struct hf_producer {
    hf_requests requests;
    hf_run_loop run;
    hf_bounds bounds;
    uint32_t deadline_ms;
    pid_t pid;      /* of the process that opened it */
    bool run_given; /* a run is gone on with: its ids may be known */
    char id[HF_ID_SIZE];
    void (*on_closed)(void *arg);
    void *arg;
};

/* Whether this process is a child of the one that opened the producer. */
bool hf_producer_forked(const hf_producer *producer);

#endif
