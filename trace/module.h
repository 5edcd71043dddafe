/* module.h - what holdfast-trace.so offers the commands, which load it by dlopen(): a
 * tracer (holdfast/trace.h) that sends spans by OTLP over HTTP, as JSON. It is a module
 * because libcurl brings thirty more libraries.
 *
 * on_span() copies the span into a ring and returns. A thread of the module writes what
 * waits there, and sends it. */
#ifndef HF_TRACE_MODULE_H
#define HF_TRACE_MODULE_H

#include <stdbool.h>
#include <stdint.h>

#include "holdfast/error.h"
#include "holdfast/trace.h"

enum { HF_TRACE_SERVICE_MAX = 255 };

typedef struct hf_trace_opts {
    const char *endpoint;     /* http://HOST[:PORT][/PATH]; /v1/traces is added */
    const char *headers_file; /* with lines "Name: value"; NULL: none */
    bool gzip;                /* the body of a request is compressed */
    /* Its name, unless OTEL_SERVICE_NAME says another: at most HF_TRACE_SERVICE_MAX bytes
     * of UTF-8. */
    const char *service;
    /* Spans were lost, so many until now: told at most once a minute, and at the end, on
     * the module's thread. */
    void (*on_loss)(uint64_t dropped, const char *why, void *arg);
    void *arg;
} hf_trace_opts;

typedef struct hf_trace_sender hf_trace_sender;

typedef struct hf_trace_module {
    int version; /* HF_VERSION, which must be that of the command */
    /* HF_CONFIG, HF_NOMEM, HF_SYSTEM: *out is untouched. */
    hf_err (*open)(hf_trace_sender **out, const hf_trace_opts *opts,
                   char detail[HF_DETAIL_SIZE]);
    void (*on_span)(const hf_span *span, void *sender);
    uint64_t (*dropped)(void *sender);
    /* Sends what waits, for at most so long; no span may come any more. */
    void (*close)(hf_trace_sender *sender, uint32_t deadline_ms);
} hf_trace_module;

#define HF_TRACE_FILE "holdfast-trace.so"
#define HF_TRACE_SYMBOL "hf_trace_functions"
HF_API extern const hf_trace_module hf_trace_functions;

#endif
