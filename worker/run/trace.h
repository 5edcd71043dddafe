/* trace.h - where a run is in a trace, and the spans that report it.
 *
 * All ids of a run come from its job and its fence, so the next run, wherever it is,
 * finds the span of the attempt before it by the fence in the record. A job without a
 * trace has the same one in each run. */
#ifndef HF_WORKER_RUN_TRACE_H
#define HF_WORKER_RUN_TRACE_H

#include "base/traceparent.h"
#include "worker/worker.h"

typedef struct hf_run_trace {
    hf_traceparent job;             /* its header's */
    hf_traceparent here;            /* the span `process` */
    bool has_job;                   /* there is such a header */
    char text[HF_TRACEPARENT_SIZE]; /* what its handler gets; "": none */
} hf_run_trace;

/* It was made of a record. */
void hf_trace_begin(hf_run *run);
/* Redis has answered its verdict. */
void hf_trace_end(const hf_run *run);

#endif
