/* overview.h - what the poller knows of the whole: the facts, the verdict, the rates. It
 * is read again when a request comes and it is older than a second; with more than a
 * hundred queues, than a second for each hundred. A queue whose counters stand still is
 * asked for little (seen/gather.h). */
#ifndef HF_DASHBOARD_OVERVIEW_H
#define HF_DASHBOARD_OVERVIEW_H

#include "dashboard/ask.h"
#include "seen/wrong.h"

void hf_overview_free(hf_overview *overview);

/* Reads it if it is old. HF_NOMEM; a Redis that is away is a fact. */
HF_MUSTCHECK hf_err hf_overview_read(hf_reader *r);

/* The facts, of the last time when Redis answered; the verdict of now. Borrowed until it
 * is read again. */
const hf_facts *hf_overview_facts(const hf_overview *o);
const hf_wrongs *hf_overview_wrongs(const hf_overview *o);
/* As `worker list --json` has them. */
const json_t *hf_overview_worker_objects(const hf_overview *o);
bool hf_overview_is_away(const hf_overview *o);
int64_t hf_overview_age_ms(const hf_overview *o);
uint64_t hf_overview_slots(const hf_overview *o, uint64_t *running);

/* GET overview, queues, queues/Q, workers */
hf_err hf_overview_get(hf_query *ask, hf_reader *r);
hf_err hf_overview_queues(hf_query *ask, hf_reader *r);
hf_err hf_overview_workers(hf_query *ask, hf_reader *r);

/* A queue with its rates, as in the list; the caller's. NULL: no memory. */
json_t *hf_overview_queue(hf_reader *r, const hf_queue_stats *stats);

#endif
