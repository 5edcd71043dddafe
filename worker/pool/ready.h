/* ready.h - the frame `ready` (docs/pipe.md): what a long-lived program offers. Pure.
 *
 * Its options have the names of the configuration file, and its times are in ms. */
#ifndef HF_WORKER_POOL_READY_H
#define HF_WORKER_POOL_READY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cron/expr.h"
#include "holdfast/error.h"
#include "holdfast/schedule.h"
#include "holdfast/worker.h"

enum {
    HF_READY_VERSION = 1,      /* of the protocol: HOLDFAST_PIPE */
    HF_READY_TYPES_MAX = 1000, /* types of a program */
    HF_READY_SCHEDULES_MAX = 1000,
    HF_READY_PARALLEL_MAX = 1024, /* runs at a time in one process */
    HF_READY_CLIENT_MAX = 128     /* bytes of `client` */
};

/* What the program does not name is zero, and is as in the configuration. */
typedef struct hf_ready_type {
    char type[HF_ID_SIZE];
    char queue[HF_ID_SIZE];   /* where its jobs come from; "" : default */
    char on_dead[HF_ID_SIZE]; /* "" : not named */
    bool has_timeout;
    uint32_t timeout_ms; /* with has_timeout 0: never */
    uint32_t max_attempts;
    int64_t keep_ms; /* HF_KEEP_NONE: not at all */
    bool has_backoff;
    hf_backoff_kind backoff;
    uint32_t backoff_base_ms, backoff_cap_ms;
    double backoff_jitter; /* HF_JITTER_NONE: none */
} hf_ready_type;

/* The text of a schedule is its own. */
typedef struct hf_ready_schedule {
    hf_schedule schedule;
    char id[HF_ID_SIZE], queue[HF_ID_SIZE], type[HF_ID_SIZE], on_dead[HF_ID_SIZE];
    char cron[HF_CRON_TEXT_MAX + 1], tz[HF_ZONE_NAME_MAX + 1];
    char *payload; /* owned */
} hf_ready_schedule;

typedef struct hf_ready {
    char client[HF_READY_CLIENT_MAX + 1]; /* for people: "python 0.2.0" */
    uint32_t parallel;
    hf_ready_type *types; /* in the order of their names */
    size_t n_types;
    hf_ready_schedule *schedules; /* in the order of their queues and ids */
    size_t n_schedules;
} hf_ready;

/* Reads the line of a frame READY. HF_INVALID, and the sentence names what is refused:
 * another version, a type that is no name, an option outside of its bounds. HF_NOMEM. The
 * caller owns *out and ends it with hf_ready_free(). */
HF_MUSTCHECK hf_err hf_ready_read(hf_ready **out, const char *line, size_t len,
                                  char detail[HF_DETAIL_SIZE]);
void hf_ready_free(hf_ready *ready); /* NULL is fine */

/* Whether two processes offer the same; `client` does not matter. */
bool hf_ready_same(const hf_ready *a, const hf_ready *b);

/* The options of a type, or NULL. */
const hf_ready_type *hf_ready_find(const hf_ready *ready, const char *type);

#endif
