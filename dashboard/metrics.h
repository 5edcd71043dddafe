/* metrics.h - the figures of all queues as Prometheus reads them. */
#ifndef HF_DASHBOARD_METRICS_H
#define HF_DASHBOARD_METRICS_H

#include "dashboard/ask.h"

hf_err hf_metrics_get(hf_query *ask, hf_reader *r);

#endif
