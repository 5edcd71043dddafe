/* writer.h - lines for a stream that may block: a pipe that is not read, a terminal that
 * is stopped. A thread writes them, so the caller does not wait for the stream.
 *
 * The stream stays as it was inherited: O_NONBLOCK would change it for every process that
 * has it. Lines that the buffer cannot take, or that cannot be written (a full disk), are
 * counted. The count is written as soon as the stream takes lines again. */
#ifndef HF_CLI_WRITER_H
#define HF_CLI_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

typedef struct hf_writer hf_writer;

enum { HF_WRITER_MAX = 1 << 20 }; /* bytes that wait; more lines are only counted */

/* Appends the line that says how many lines are missing here. On the writer's thread. */
typedef void hf_writer_gap_fn(hf_buf *out, uint64_t lines, void *arg);

/* NULL: out of memory, or of threads. */
hf_writer *hf_writer_open(int fd, hf_writer_gap_fn *gap, void *arg);

/* One or more whole lines, written or left out together. Any thread. */
void hf_writer_put(hf_writer *writer, const char *lines, size_t len);

/* Waits at most `ms` until everything is written. False: the stream blocks. */
bool hf_writer_flush(hf_writer *writer, uint32_t ms);

/* Flushes and ends it. What is not written by then may be lost. NULL is nothing. */
void hf_writer_close(hf_writer *writer, uint32_t ms);

#endif
