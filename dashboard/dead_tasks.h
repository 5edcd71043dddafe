/* dead_tasks.h - work on many dead jobs that goes on behind an answer: a retry at a rate,
 * or a purge. Each task has a thread and a connection of its own, so no reader waits for
 * it.
 *
 * A Redis that is away is waited for: 10 minutes, then the task has failed. It ends with
 * the dashboard. At any time it can be told how far it came. Any thread may call. */
#ifndef HF_DASHBOARD_DEAD_TASKS_H
#define HF_DASHBOARD_DEAD_TASKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error_key.h"
#include "base/id.h"
#include "holdfast/admin.h"

typedef struct hf_dead_tasks hf_dead_tasks;

enum {
    HF_TASKS_AT_A_TIME = 4,
    HF_TASKS_KEPT = 32, /* with those that have ended */
    HF_TASK_RATE_MAX = 10000,
    HF_TASK_BY = 96
};

/* What is to be done. */
typedef struct hf_task_order {
    bool purge;                               /* else a retry */
    char queue[HF_ID_SIZE], type[HF_ID_SIZE]; /* "": any type */
    bool of_error;                            /* only those with an error of this key */
    char key[HF_ERROR_KEY_SIZE];
    int64_t since_ms, until_ms;   /* as hf_dead_filter has them */
    size_t jobs;                  /* at most this many */
    uint32_t rate;                /* in a second; 0: as fast as Redis answers */
    char by[HF_TASK_BY], role[8]; /* the caller that began it */
} hf_task_order;

typedef enum hf_task_state {
    HF_TASK_RUNNING,
    HF_TASK_AWAY, /* it waits for Redis; `why` has its words */
    HF_TASK_DONE,
    HF_TASK_STOPPED, /* by hf_dead_tasks_stop() */
    HF_TASK_FAILED   /* `why` says it */
} hf_task_state;

typedef struct hf_task_view {
    char id[HF_NEW_ID_SIZE];
    hf_task_order order;
    hf_task_state state;
    bool stopping;
    size_t done;
    size_t unsure; /* jobs with an unknown result: Redis was away before it answered */
    char why[HF_DETAIL_SIZE];
    int64_t began_ms, ended_ms; /* on this host's clock; 0: it has not ended */
} hf_task_view;

/* All is borrowed for as long as it is open. */
typedef struct hf_dead_tasks_opts {
    const hf_server_opts *server;
    /* Called by the task's thread when it has ended. */
    void (*ended)(const hf_task_view *task, void *arg);
    void *arg;
} hf_dead_tasks_opts;

/* HF_NOMEM, HF_SYSTEM. */
HF_MUSTCHECK hf_err hf_dead_tasks_open(hf_dead_tasks **out,
                                       const hf_dead_tasks_opts *opts);
/* Stops all of them, and waits for a request that is under way. NULL is fine. */
void hf_dead_tasks_close(hf_dead_tasks *tasks);

/* HF_BUSY: HF_TASKS_AT_A_TIME run. HF_NOMEM, HF_SYSTEM. */
HF_MUSTCHECK hf_err hf_dead_tasks_start(hf_dead_tasks *tasks, const hf_task_order *order,
                                        char id[HF_NEW_ID_SIZE]);
/* False: there is no such task. One that has ended stays as it is. */
bool hf_dead_tasks_stop(hf_dead_tasks *tasks, const char *id);
bool hf_dead_tasks_read(hf_dead_tasks *tasks, const char *id, hf_task_view *out);
/* All that are kept, the newest first; returns how many. */
size_t hf_dead_tasks_list(hf_dead_tasks *tasks, hf_task_view out[HF_TASKS_KEPT]);

bool hf_dead_tasks_has_ended(const hf_task_view *task);

#endif
