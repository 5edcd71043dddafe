/* tracing.h - the spans of a command, as `tracing` of the configuration says. The module
 * holdfast-trace.so, which lies where helper programs do, sends them. */
#ifndef HF_CLI_COMMON_TRACING_H
#define HF_CLI_COMMON_TRACING_H

#include <stdbool.h>

#include "cli/exit.h"
#include "config/config.h"
#include "holdfast/trace.h"

enum { HF_TRACING_END_MS = 2000 }; /* for what waits at the end */

typedef struct hf_tracing {
    hf_tracer tracer;
    const struct hf_trace_module *module;
    struct hf_trace_sender *sender; /* NULL: nothing is traced */
} hf_tracing;

/* Whether the module is there. If not, `detail` says what to install. */
bool hf_tracing_is_there(char detail[HF_DETAIL_SIZE]);
/* `on_loss` is called on a thread of its own (trace/module.h). Returns the exit code, and
 * `detail` says why; 69: the module is missing. */
int hf_tracing_open(hf_tracing *out, const hf_config *config,
                    void (*on_loss)(uint64_t dropped, const char *why, void *arg),
                    void *arg, char detail[HF_DETAIL_SIZE]);
/* For the options; NULL: nothing is traced. */
const hf_tracer *hf_tracing_tracer(const hf_tracing *tracing);
/* The worker or the producer is gone. Sends what waits. */
void hf_tracing_close(hf_tracing *tracing);

#endif
