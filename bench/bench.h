/* bench.h - `holdfast bench`: compares the library with a bare hiredis loop that uses the
 * same scripts on the same Redis in the same run. Absolute figures differ from machine to
 * machine: compare the ratios. */
#ifndef HF_BENCH_BENCH_H
#define HF_BENCH_BENCH_H

#include <stdint.h>

#include "holdfast/error.h"
#include "holdfast/server.h"

/* Bytes of payloads in all, at most: they are in Redis's memory at one time. */
#define HF_BENCH_BYTES_MAX (INT64_C(1) << 30)

/* The measurements, or-ed together; 0: all. */
enum {
    HF_BENCH_RATES = 1, /* enqueue, process, bytes_per_job */
    HF_BENCH_PICKUP = 2,
    HF_BENCH_LATENESS = 4,
    HF_BENCH_RECOVERY = 8
};

typedef struct hf_bench_opts {
    const char *url;           /* NULL: a private Redis, started and ended here */
    const char *password_file; /* for url; may be NULL */
    const char *bare_url;      /* of the same Redis without TLS, for the bare loop; NULL:
                                  url */
    uint32_t jobs;             /* of the rates and of bytes_per_job */
    uint32_t payload_bytes;
    uint32_t concurrency;
    unsigned parts; /* HF_BENCH_...; a part that was not measured is 0 in the result */
    void (*on_part)(const char *what, void *arg); /* what is measured next; may be NULL */
    void *arg;
} hf_bench_opts;

typedef struct hf_spread {
    double p50, p99;
} hf_spread;

typedef struct hf_bench_result {
    hf_server_info server;
    double enqueue_per_s, process_per_s, bare_enqueue_per_s, bare_process_per_s;
    double enqueue_ratio, process_ratio;
    /* The bare loop again, with as many jobs at a time as it can: about what Redis can
     * do. */
    double bulk_enqueue_per_s, bulk_process_per_s;
    hf_spread pickup_us, alike_pickup_us, /* enqueued as those of the bare loop are */
        bare_pickup_us;    /* from before the enqueue to the handler's start */
    hf_spread lateness_ms; /* from due to the handler's start */
    hf_spread recovery_ms; /* from SIGKILL to the handler's start elsewhere */
    double bytes_per_job;
    uint32_t lease_ms; /* of the part about recovery */
    int signal;        /* INT or TERM came and ended it; 0: none */
} hf_bench_result;

/* Measures everything, each part alone, and takes its keys away again. Called from the
 * main thread, while there is no other. HF_CANCEL: a signal ended it. Any other fault:
 * `detail` says what failed. */
HF_MUSTCHECK hf_err hf_bench_run(const hf_bench_opts *opts, hf_bench_result *out,
                                 char detail[HF_DETAIL_SIZE]);

/* The process that is killed in the part about recovery: a worker that takes one job and
 * keeps it. Where Redis is comes on its standard input. Comes back only when it cannot
 * work. */
HF_MUSTCHECK hf_err hf_bench_victim(char detail[HF_DETAIL_SIZE]);

#endif
