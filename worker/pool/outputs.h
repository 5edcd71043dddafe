/* outputs.h - what one process of a pool writes to its standard output and error: lines
 * for the log, with a limit for each run or second, and the end of the error, which tells
 * why it died. Belongs to the loop. */
#ifndef HF_WORKER_POOL_OUTPUTS_H
#define HF_WORKER_POOL_OUTPUTS_H

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#include "worker/program/output.h"

typedef struct hf_outputs hf_outputs;

typedef struct hf_outputs_calls {
    void (*line)(int stream, const char *text, size_t len, void *arg);
    void (*bytes)(const char *bytes, size_t len, void *arg); /* as they come */
    void (*closed)(void *arg); /* twice after hf_outputs_close() */
} hf_outputs_calls;

typedef struct hf_output_end {
    hf_outputs *owner;
    uv_poll_t poll;
    bool polled, ended; /* the other side is closed */
    int fd;             /* -1: closed */
} hf_output_end;

/* Part of its owner's struct, which stays until `closed`. */
struct hf_outputs {
    const hf_outputs_calls *calls;
    void *arg;
    hf_output_end ends[2];
    hf_program_output text;
};

/* Before all others. */
void hf_outputs_init(hf_outputs *outputs, const hf_outputs_calls *calls, void *arg);
/* The two ends of the process, which the caller closes. Returns how many `closed` will
 * follow hf_outputs_close(): fewer than 2, with errno, if not both are open. */
int hf_outputs_open(hf_outputs *outputs, uv_loop_t *loop, int far[2]);
void hf_outputs_watch(hf_outputs *outputs);
void hf_outputs_close(hf_outputs *outputs);

/* At most this many reads of 64 KiB of each. */
void hf_outputs_read(hf_outputs *outputs, int reads);
/* What came until now belongs together: unfinished lines end, and how much was left out
 * is told. What follows has its own limit, and its own end of the standard error. */
void hf_outputs_begin(hf_outputs *outputs);
void hf_outputs_end(hf_outputs *outputs); /* nothing follows */

#endif
