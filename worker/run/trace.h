/* trace.h - where a run is in a trace. */
#ifndef HF_WORKER_RUN_TRACE_H
#define HF_WORKER_RUN_TRACE_H

#include "base/traceparent.h"
#include "queue/record.h"

typedef struct hf_run_trace {
    char text[HF_TRACEPARENT_SIZE]; /* what its handler gets; "": none */
} hf_run_trace;

/* The headers of its job were read. */
void hf_run_trace_begin(hf_run_trace *trace, const hf_record *record);

#endif
