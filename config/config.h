/* config.h - the configuration file: read and checked as a whole. A file with a fault is
 * not used.
 *
 * Everything about a key (its type, range, default, help) stands in one table,
 * config/schema.c. The reader, the checks, the defaults and the reference in
 * docs/configure.md come from it. Read schema.c first. */
#ifndef HF_CONFIG_CONFIG_H
#define HF_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "holdfast/error.h"
#include "holdfast/job.h"
#include "holdfast/schedule.h"
#include "holdfast/server.h"
#include "holdfast/worker.h"

enum {
    HF_CONFIG_DETAIL_SIZE = 1024, /* room for "FILE:LINE:COL: expected ..., found ..." */
    HF_CONFIG_FILE_MAX = 1 << 20, /* bytes of a file */
    HF_CONFIG_QUEUES_MAX = 64,
    HF_CONFIG_PARTS_MAX = 128, /* queues, and shards of them */
    HF_CONFIG_SHARDED_NAME_MAX = 120,
    HF_CONFIG_HANDLERS_MAX = 1000,
    HF_CONFIG_TYPES_MAX = 1000, /* of one pool */
    HF_CONFIG_SCHEDULES_MAX = 1000,
    HF_CONFIG_WORDS_MAX = 256 /* entries of one list of words */
};

/* All text is owned by the hf_config. All numbers are int64_t: the table fills them all
 * in the same way, and its ranges make them fit their targets. */
typedef struct hf_config_queue {
    char *name;
    int64_t weight;
    int64_t max_running; /* 0: no limit */
    int64_t rate_limit;  /* 0: no limit */
    int64_t rate_per_ms;
    int64_t shards;  /* 0: as it is in Redis */
    bool has_limits; /* the file names max_running or rate */
    int64_t keep_ms; /* 0: done jobs are not kept */
    int64_t keep_max, keep_bytes;
    char *on_dead; /* NULL: none */
} hf_config_queue;

/* A program for each job (`exec`), or one that lives for many (`pool`). */
typedef struct hf_config_handler {
    char *type;         /* NULL: of a pool */
    char **exec;        /* ends with NULL; NULL: a pool */
    char **pool;        /* ends with NULL; NULL: a program for each job */
    int64_t timeout_ms; /* 0: none */
    int64_t grace_ms;
    char **env; /* ends with NULL; NULL: none, or all */
    bool env_all;
    char *cwd;             /* NULL: the worker's */
    int64_t max_attempts;  /* 0: that of `retry` */
    int64_t keep_ms;       /* 0: not at all */
    bool has_keep;         /* the file names it, else it is that of the queue */
    int64_t logs;          /* 0: no, 1: yes */
    int64_t result_stdout; /* as `logs` */
    char *on_dead;         /* NULL: the queue's */
    /* of a pool; 0: as hf_pool says, but for idle_ms: never */
    int64_t processes, parallel, start_timeout_ms;
    int64_t max_jobs, max_age_ms, max_rss, idle_ms;
    hf_pool_type *types; /* owned, with their text */
    size_t n_types;
} hf_config_handler;

typedef enum hf_config_format { HF_FORMAT_LOGFMT, HF_FORMAT_JSON } hf_config_format;

typedef enum hf_config_compression {
    HF_COMPRESSION_NONE,
    HF_COMPRESSION_GZIP
} hf_config_compression;

typedef struct hf_config {
    char *file;            /* as it was named; NULL: only defaults */
    char *redis_url;       /* with the Sentinels of the three keys below it */
    char *sentinel_master; /* NULL: none, as the next three */
    char **sentinel_nodes; /* ends with NULL */
    char *sentinel_user, *sentinel_password_file;
    char **cluster_nodes;                                /* ends with NULL; NULL: none */
    hf_sentinel_opts sentinel;                           /* the last two */
    char *password_file;                                 /* NULL: none */
    char *tls_ca, *tls_cert, *tls_key, *tls_server_name; /* NULL: none */
    int64_t tls_verify;                                  /* 0: no, 1: yes */
    hf_tls_opts tls;                                     /* the five above */
    int64_t connect_timeout_ms, request_timeout_ms;
    char *ns;
    hf_worker_opts worker; /* its pointers are NULL */
    hf_config_queue *queues;
    size_t n_queues;
    int64_t payload_max; /* bytes */
    hf_config_handler *handlers;
    size_t n_handlers;
    hf_schedule *schedules; /* each owns its text */
    size_t n_schedules;
    char *tracing_endpoint;      /* NULL: nothing is traced */
    char *tracing_headers_file;  /* NULL: none */
    double tracing_sample;       /* 0..1 */
    int64_t tracing_link;        /* an hf_trace_link */
    int64_t tracing_compression; /* an hf_config_compression */
    int64_t log_level;           /* an hf_log_level */
    int64_t log_format;          /* an hf_config_format */
    char *metrics_listen;        /* NULL: none */
} hf_config;

/* Reads a file; path NULL gives the defaults. The caller owns *out and ends it with
 * hf_config_free(). HF_CONFIG, HF_NOMEM: *out is untouched, and `detail` holds one line,
 * "FILE:LINE:COL: expected ..., found ...". A password is in none of them. */
HF_MUSTCHECK hf_err hf_config_load(hf_config **out, const char *path,
                                   char detail[HF_CONFIG_DETAIL_SIZE]);
void hf_config_free(hf_config *config); /* NULL is fine */

/* Fill options from the config and leave their other fields unchanged. Pointers are
 * borrowed from the config. */
void hf_config_fill_server(const hf_config *config, hf_server_opts *out);
/* Not its server and its queues. */
void hf_config_fill_worker(const hf_config *config, hf_worker_opts *out);
void hf_config_fill_queue(const hf_config_queue *queue, hf_worker_queue *out);
/* A handler with `exec`; one with `pool`. */
void hf_config_fill_program(const hf_config_handler *handler, hf_program *out);
void hf_config_fill_pool(const hf_config_handler *handler, hf_pool *out);

/* Writes the reference of all keys as a Markdown table into `text`, which is allocated,
 * owned by the caller and ended with free(). HF_NOMEM. */
HF_MUSTCHECK hf_err hf_config_reference(char **text);
/* Writes the manual page holdfast.yaml(5). */
void hf_config_manual(FILE *file);

#endif
