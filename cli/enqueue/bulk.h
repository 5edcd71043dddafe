/* bulk.h - a file of jobs, one JSON object per line, as blocks that are each sent all or
 * none.
 *
 * A block holds jobs of one queue, in the order of their lines: at most HF_BATCH_JOBS and
 * less than HF_BATCH_BYTES. Lines of several queues fill one open block for each of them.
 * Blocks and their numbers depend on the file alone. So the same file with the same run
 * makes the same requests, and Redis knows those it has executed. */
#ifndef HF_CLI_ENQUEUE_BULK_H
#define HF_CLI_ENQUEUE_BULK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/enqueue/bulk_line.h"
#include "holdfast/producer.h"

enum {
    HF_BULK_OPEN_BLOCKS = 256,     /* then the oldest one is sent */
    HF_BULK_OPEN_BYTES = 128 << 20 /* then the largest one is sent */
};

typedef struct hf_bulk_block {
    const hf_job *jobs;
    size_t n;
    uint64_t number; /* from 1, rising */
    uint64_t first;  /* how many jobs were in the blocks before */
} hf_bulk_block;

/* HF_OK, or what ends the whole; then it says itself what was wrong. */
typedef hf_err (*hf_bulk_send_fn)(const hf_bulk_block *block, void *arg);

typedef struct hf_bulk_opts {
    int fd;                  /* borrowed */
    const char *file;        /* its name, for messages */
    const char *queue;       /* of lines that name none */
    size_t payload_max;      /* bytes */
    const char *traceparent; /* of jobs whose lines name none; NULL: none */
    bool atomic;             /* one block, or nothing */
    hf_bulk_send_fn send;
    /* Now and then; may be NULL. */
    void (*progress)(uint64_t bytes_read, void *arg);
    void *arg;
} hf_bulk_opts;

/* HF_OK: every line was sent. HF_CANCEL: a signal asked to stop (cli/stop.h). HF_INVALID,
 * HF_TOOBIG (a line, or more than one block with atomic), HF_SYSTEM (the file cannot be
 * read), HF_NOMEM: `detail` says "FILE:LINE: ...". Else what `send` gave, and `detail` is
 * "". Unless it is HF_OK, nothing more of the open blocks was sent. */
HF_MUSTCHECK hf_err hf_bulk_read(const hf_bulk_opts *opts,
                                 char detail[HF_BULK_DETAIL_SIZE]);

#endif
