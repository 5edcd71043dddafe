/* runs.h - the runs of jobs that are known, for the lanes of the workers.
 *
 * Any source may report a run, in any order and again: a list of what runs now, or a
 * stream of what has ended. A list tells no ends: a run that it does not have any more
 * ended at some time since it was seen last, with an unknown outcome. */
#ifndef HF_TOP_RUNS_H
#define HF_TOP_RUNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holdfast/admin.h"

typedef enum hf_top_run_end {
    HF_TOP_RUN_RUNS,
    HF_TOP_RUN_ENDED, /* done, or the outcome is not known */
    HF_TOP_RUN_FAILED /* failed, died, or crashed */
} hf_top_run_end;

typedef struct hf_top_run {
    char id[HF_ID_SIZE], worker[HF_HOLDER_SIZE];
    uint64_t fence;           /* with the id: which run it is. 0: not known; then the last
                                 one of this number and worker, or a new one */
    uint32_t run;             /* of the job, from 1 on */
    int64_t start_ms, end_ms; /* Unix ms on Redis's clock; end_ms 0: it runs */
    int64_t seen_ms;          /* in a list; 0: never */
    hf_top_run_end end;
} hf_top_run;

/* The memory is bounded: of more runs the ones that ended first are forgotten. */
enum { HF_RUNS_MAX = 4096 };

typedef struct hf_top_runs {
    hf_top_run *at; /* owned */
    size_t n;
} hf_top_runs;

void hf_top_runs_done(hf_top_runs *runs);

/* Reports a run. What is known of its end stays known. False: no memory. */
bool hf_top_runs_tell(hf_top_runs *runs, const hf_top_run *run);

/* A list of all that runs was read at now_ms: runs that were not told with this seen_ms
 * have ended. `whole` false: the list was cut, so a run that it lacks may still run. Runs
 * that ended before since_ms are forgotten. */
void hf_top_runs_listed(hf_top_runs *runs, int64_t now_ms, bool whole, int64_t since_ms);

/* The cells of a worker's lane from from_ms on, each of step_ms. */
typedef enum hf_lane_cell {
    HF_LANE_EMPTY,
    HF_LANE_ENDED,
    HF_LANE_RUNS,
    HF_LANE_FAILED
} hf_lane_cell;
void hf_top_runs_lane(const hf_top_runs *runs, const char *worker, int64_t from_ms,
                      int64_t step_ms, int64_t now_ms, hf_lane_cell *cells, size_t n);

#endif
