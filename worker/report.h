/* report.h - what the worker tells its log. */
#ifndef HF_WORKER_REPORT_H
#define HF_WORKER_REPORT_H

#include "worker/worker.h"

enum { HF_RATE_SIZE = 48 }; /* of a rate as text */

void hf_report(hf_worker *w, hf_log_level level, const char *message,
               const hf_log_field *fields, size_t n);
void hf_report_text(hf_worker *w, hf_log_level level, const char *message,
                    const char *key, const char *text);
/* Each failed try to connect comes here: an error at the start, when the reason changes
 * and once a minute, else for debugging. */
void hf_report_outage(hf_worker *w, hf_outage *outage, const char *message, hf_err err,
                      const char *detail);
void hf_report_rate(const hf_worker_queue *limits, char out[HF_RATE_SIZE]); /* 100/1s */

#endif
