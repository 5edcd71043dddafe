/* short_runs.h - how many short runs ended, by worker and second: for an hour, older ones
 * by longer times. */
#ifndef HF_DASHBOARD_SHORT_RUNS_H
#define HF_DASHBOARD_SHORT_RUNS_H

#include <jansson.h>
#include <stdint.h>

#include "holdfast/runs.h"

typedef struct hf_short_runs hf_short_runs;

hf_short_runs *hf_short_runs_new(void); /* NULL: no memory */
void hf_short_runs_free(hf_short_runs *runs);

/* look: the number of the look that found the entry. */
void hf_short_runs_add(hf_short_runs *runs, const hf_runs_entry *entry, uint64_t look);

/* [{worker, t_ms, ok, failed}]: from t_ms on, for a second of the last minute, before
 * that for longer. *cut: the longer runs that their workers had no room for. */
json_t *hf_short_runs_since(const hf_short_runs *runs, int64_t from_ms, int64_t now_ms,
                            int64_t *cut);
/* Only the seconds in which these looks found something. *cut: of the last look. */
json_t *hf_short_runs_news(const hf_short_runs *runs, uint64_t from_look, uint64_t look,
                           int64_t *cut);

#endif
