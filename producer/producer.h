/* producer.h - the struct of a producer, for the files that implement its public
 * calls. */
#ifndef HF_PRODUCER_PRODUCER_H
#define HF_PRODUCER_PRODUCER_H

#include <sys/types.h>

#include "producer/check.h"
#include "producer/requests.h"
#include "queue/tracing.h"

struct hf_producer {
    hf_requests requests;
    hf_run_loop run;
    hf_bounds bounds;
    uint32_t deadline_ms;
    pid_t pid;      /* of the process that opened it */
    bool run_given; /* it continues an earlier run: its ids may be known */
    char id[HF_ID_SIZE];
    hf_tracer tracer;
    hf_span_server server; /* of a producer with a tracer */
    void (*on_closed)(void *arg);
    void *arg;
};

/* Whether this process is a child of the one that opened the producer. */
bool hf_producer_forked(const hf_producer *producer);

/* Explains why the queue of requests did not take a call, and gives err back. */
hf_err hf_producer_refuse(hf_err err, char detail[HF_DETAIL_SIZE]);

#endif
