/* running.h - the runs that go on and those that ended lately, kept from look to look.
 *
 * A look says that a viewer watches, and puts together what workers tell
 * (hf_admin_runs()), which jobs Redis holds as running, and the heartbeats. A run that
 * Redis no longer holds, and whose end no worker has told, ended untold: its worker died,
 * or is of an older version. */
#ifndef HF_SEEN_RUNNING_H
#define HF_SEEN_RUNNING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holdfast/runs.h"

/* Times are Unix ms on Redis's clock. */
typedef struct hf_seen_run {
    char queue[HF_ID_SIZE], id[HF_ID_SIZE], type[HF_ID_SIZE], worker[HF_HOLDER_SIZE];
    uint32_t run;           /* of the job, from 1 on */
    bool told;              /* its worker has told about it: */
    uint32_t slot;          /* of its worker, from 0 on */
    int64_t start_ms;       /* else 0 */
    int64_t end_ms;         /* 0: it goes on */
    hf_run_end end;         /* HF_RUN_GOES_ON with an end_ms: it ended untold */
    int64_t lease_until_ms; /* as Redis had it last; 0: not known */
    uint32_t attempt;       /* from 1 on; 0: not known */
    bool held;              /* Redis holds it as running */
    int64_t seen_ms;        /* when a look first found it */
    bool has_progress;
    uint32_t progress; /* percent */
    uint32_t again;    /* this many earlier ones of its job have this number */
    uint64_t changed;  /* the number of the look that last found something new of it: a
                          renewed lease is nothing new, that of a silent worker is */
    /* for running.c */
    uint64_t hash;
    int64_t told_ms;
} hf_seen_run;

typedef struct hf_seen_worker {
    char id[HF_HOLDER_SIZE], host[HF_HOLDER_SIZE]; /* host "": not known */
    int64_t pid;                                   /* 0: not known */
    int64_t heard_ms;   /* the latest of its heartbeat, of what it has told, and of the
                           leases that it has renewed */
    int64_t started_ms; /* 0: not known */
    uint32_t slots;
    bool silent; /* its heartbeats stopped without a goodbye */
    bool listed; /* it serves, or is silent; else it has ended */
} hf_seen_worker;

typedef struct hf_running hf_running;

/* What one look has found, each may be NULL. Borrowed until the call returns. */
typedef struct hf_running_calls {
    void (*run)(const hf_seen_run *run,
                void *arg); /* told for the first time; or ended */
    void (*shorts)(const char *queue, const hf_runs_entry *entry, void *arg);
    void (*silent)(const hf_seen_worker *worker, void *arg); /* since this look */
    /* Nothing has run in this queue for half a minute: it is not looked at. */
    bool (*rests)(const char *queue, void *arg);
    int64_t now_ms; /* by Redis's clock, where it is known: all queues may rest */
    void *arg;
} hf_running_calls;

/* queue NULL: all. NULL: out of memory. */
hf_running *hf_running_new(const char *queue);
void hf_running_free(hf_running *r);

/* Call it each second or so. After a failure the next look goes on. After 20 s without
 * a look, the runs that went on are forgotten. */
HF_MUSTCHECK hf_err hf_running_look(hf_running *r, hf_admin *admin,
                                    const hf_running_calls *calls,
                                    char detail[HF_DETAIL_SIZE]);

/* This user may not ask workers to tell (hf_admin_watch()): HF_AUTH; else HF_OK. */
hf_err hf_running_refused(const hf_running *r);
int64_t hf_running_now_ms(const hf_running *r); /* of the last look */

uint64_t hf_running_looks(const hf_running *r); /* the number of the last look */
size_t hf_running_queues(const hf_running *r);  /* that it looked at */

/* The longest run first; then ended ones, the last one first, for an hour, at most
 * 5,000. */
size_t hf_running_count(const hf_running *r);
const hf_seen_run *hf_running_at(const hf_running *r, size_t i);

/* Those that serve or are silent, and those that ended within the last hour. */
size_t hf_running_n_workers(const hf_running *r);
const hf_seen_worker *hf_running_worker(const hf_running *r, size_t i);

#endif
