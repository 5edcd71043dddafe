/* log.h - the worker's log on standard error: one line for each event, as logfmt
 * (key=value) or as JSON. A thread writes the lines, so the worker never waits for the
 * stream (cli/writer.h). */
#ifndef HF_CLI_WORKER_LOG_H
#define HF_CLI_WORKER_LOG_H

#include <stdatomic.h>

#include "base/buf.h"
#include "cli/writer.h"
#include "config/config.h"
#include "holdfast/worker.h"

typedef struct hf_log {
    hf_writer *writer;        /* owned */
    atomic_int level, format; /* hf_log_level, hf_config_format */
} hf_log;

/* The log stays where it is until it is closed. False: out of memory, or of threads. */
bool hf_log_open(hf_log *log, int fd, const hf_config *config);

/* Gives a blocked stream a short time. */
void hf_log_close(hf_log *log);

/* Takes level and format of another configuration. Any thread. */
void hf_log_reload(hf_log *log, const hf_config *config);

/* An hf_log_fn whose `arg` is the hf_log. Any thread. */
void hf_log_write(hf_log_level level, const char *message, const hf_log_field *fields,
                  size_t n, void *arg);

/* Only the line, without its end, for a given time, as hf_log_write() writes it. */
void hf_log_format_line(hf_buf *out, hf_config_format format, int64_t unix_ms,
                        hf_log_level level, const char *message,
                        const hf_log_field *fields, size_t n);

#endif
