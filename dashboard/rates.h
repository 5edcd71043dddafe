/* rates.h - how fast queues move: from samples of their counters, and from the history
 * that workers write. */
#ifndef HF_DASHBOARD_RATES_H
#define HF_DASHBOARD_RATES_H

#include <jansson.h>

#include "holdfast/admin.h"

typedef struct hf_rates hf_rates;

hf_rates *hf_rates_new(void); /* NULL: no memory */
void hf_rates_free(hf_rates *rates);

/* Notes the counters of a queue. */
void hf_rates_note(hf_rates *rates, const hf_queue_stats *stats);
/* Forgets the queues that were not noted since the last call. */
void hf_rates_tidy(hf_rates *rates);

/* Reads what came to the last hour of the queue, if that is older than a minute. Returns
 * whether Redis was asked. */
bool hf_rates_read_past(hf_rates *rates, hf_admin *admin, const char *queue);
/* The same of all queues in turn, with at most so many requests. */
void hf_rates_read_some(hf_rates *rates, hf_admin *admin, size_t most);

/* By the minute; a negative number: not known yet. */
typedef struct hf_rate {
    double in, done, failed;
} hf_rate;
hf_rate hf_rates_of(const hf_rates *rates, const char *queue);
/* Failed attempts of 100; negative: none ended. */
double hf_rate_failed_pct(const hf_rate *rate);
/* Ready jobs by the minute of the last hour, the oldest first; null: not known. */
json_t *hf_rates_spark(const hf_rates *rates, const char *queue);
/* The hour of all queues (hour.h); null: not known. */
json_t *hf_rates_hour(const hf_rates *rates);
/* A rate with one decimal; null: not known. */
json_t *hf_rate_json(double rate);

#endif
