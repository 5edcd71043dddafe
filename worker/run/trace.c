/* trace.c - see trace.h. */
#include "worker/run/trace.h"

void hf_run_trace_begin(hf_run_trace *trace, const hf_record *record)
{
    hf_traceparent jobs;
    if (hf_traceparent_find(record->headers.ptr, record->headers.len, &jobs))
        hf_traceparent_write(&jobs, trace->text);
}
