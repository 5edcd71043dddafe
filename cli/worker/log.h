/* log.h - the worker's log on standard error: one line for each thing that happened, as
 * logfmt (key=value) or as JSON, each written at once. */
#ifndef HF_CLI_WORKER_LOG_H
#define HF_CLI_WORKER_LOG_H

#include <pthread.h>
#include <stdio.h>

#include "base/buf.h"
#include "config/config.h"
#include "holdfast/worker.h"

typedef struct hf_log {
    pthread_mutex_t lock;
    FILE *file; /* borrowed */
    hf_log_level level;
    hf_config_format format;
} hf_log;

void hf_log_init(hf_log *log, FILE *file, const hf_config *config);
void hf_log_done(hf_log *log);

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
