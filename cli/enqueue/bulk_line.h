/* bulk_line.h - one line of a bulk file: a JSON object that describes a job. */
#ifndef HF_CLI_ENQUEUE_BULK_LINE_H
#define HF_CLI_ENQUEUE_BULK_LINE_H

#include <stddef.h>
#include <stdint.h>

#include "holdfast/error.h"
#include "holdfast/producer.h"

enum { HF_BULK_DETAIL_SIZE = 512 };

typedef struct hf_bulk_line {
    hf_job job;            /* borrowed from the line and from what is owned below */
    char *texts_;          /* owned: what its strings say */
    unsigned char *bytes_; /* owned */
} hf_bulk_line;

/* Reads a line, which must stay until hf_bulk_line_done(). HF_OK; HF_INVALID or
 * HF_TOOBIG, and `detail` says "expected ..., found ..."; HF_NOMEM. */
HF_MUSTCHECK hf_err hf_bulk_line_read(hf_bulk_line *out, const char *line, size_t len,
                                      size_t payload_max,
                                      char detail[HF_BULK_DETAIL_SIZE]);
void hf_bulk_line_done(hf_bulk_line *line);

#endif
