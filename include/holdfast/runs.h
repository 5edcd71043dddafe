/* runs.h - what runs: where, in which slot and since when, and what has ended.
 *
 * While a viewer watches, each worker tells once a second, for each of its queues, which
 * runs have ended and which go on: of runs of 2 s and more each one, of shorter ones how
 * many there were. Without a viewer workers write nothing. Workers of older versions
 * never do; hf_admin_list() shows their running jobs, and the leases and the progress of
 * all.
 *
 * The calls are those of an hf_admin, with its rules and faults (holdfast/admin.h). */
#ifndef HOLDFAST_RUNS_H
#define HOLDFAST_RUNS_H

#include "holdfast/admin.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Says that a viewer watches runs for the next 20 s. The viewer calls this each 5 s.
 * Workers hear of it with their next heartbeat, within 10 s. HF_AUTH: this user may read
 * what workers report, but not ask for it. */
HF_API HF_MUSTCHECK hf_err hf_admin_watch(hf_admin *admin, char detail[HF_DETAIL_SIZE]);

typedef enum hf_run_end {
    HF_RUN_GOES_ON,
    HF_RUN_DONE,
    HF_RUN_FAILED,  /* and its job is tried again */
    HF_RUN_DEAD,    /* its job died with it */
    HF_RUN_CRASHED, /* its process ended without a verdict */
    HF_RUN_CANCELLED,
    HF_RUN_RELEASED, /* given back, and no attempt was counted */
    HF_RUN_LOST      /* its worker had lost the lease */
} hf_run_end;

/* "runs", "done", "failed", "dead", "crashed", "cancelled", "released" or "lost". */
HF_API const char *hf_run_end_word(hf_run_end end);

/* A run of 2 s and more. Times are on Redis's clock. Its worker reports it when it has
 * run for 2 s, each 10 s while it goes on, and when Redis has answered its verdict. */
typedef struct hf_reported_run {
    size_t size; /* the library sets it */
    char id[HF_ID_SIZE], type[HF_ID_SIZE];
    uint32_t run;     /* of the job, from 1 on: failed attempts and crashes count. As
                         attempts + crashes + 1 of hf_job_info while it goes on */
    uint32_t slot;    /* of its worker, from 0 on: runs with one slot do not overlap */
    int64_t start_ms; /* Unix ms */
    int64_t ran_ms;   /* HF_RUN_GOES_ON: 0 */
    hf_run_end end;
    uint32_t unused;
} hf_reported_run;

/* What one worker reports of a second. Borrowed until the callback returns. */
typedef struct hf_runs_entry {
    size_t size;                      /* the library sets it */
    const char *worker;               /* its id */
    int64_t at_ms;                    /* when it was reported: Unix ms on Redis's clock */
    int64_t short_done, short_failed; /* runs below 2 s that ended since its last entry;
                                        failed: also dead, crashed, or lost */
    int64_t cut;                      /* longer ones that found no room, beyond 200 */
    const hf_reported_run *runs;      /* n_runs */
    size_t n_runs;
} hf_runs_entry;
typedef void (*hf_runs_cb)(const hf_runs_entry *entry, void *arg);

/* Where a call has stopped, so the next one can continue. */
typedef struct hf_runs_place {
    size_t size;      /* HF_RUNS_PLACE_INIT */
    int64_t since_ms; /* set by the caller: only what was reported at this time (Unix ms
                         on Redis's clock) or later; 0: all */
    int64_t now_ms;   /* when it was read */
    bool more;        /* there are entries that this call had no room for */
    bool unused[7];
    int64_t last_ms[HF_SHARDS_MOST], last_number[HF_SHARDS_MOST]; /* the library's: the
                                                       last entry of each shard */
} hf_runs_place;
#define HF_RUNS_PLACE_INIT HF_STRUCT_INIT(hf_runs_place)

/* Calls cb for each entry of a queue behind *place, in the order in which they came; of a
 * queue with shards, those of one shard after the other. A call reads about 256 KiB, of
 * each shard. Redis keeps about 600 entries, and drops all a minute after the last one;
 * what is dropped before it was read is missed. */
HF_API HF_MUSTCHECK hf_err hf_admin_runs(hf_admin *admin, const char *queue,
                                         hf_runs_place *place, hf_runs_cb cb, void *arg,
                                         char detail[HF_DETAIL_SIZE]);

#ifdef __cplusplus
}
#endif

#endif
