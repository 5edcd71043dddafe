/* timeline.h - what workers ran in the last hour, as far as they told about it. It is
 * looked at again when a request comes and it is older than a second; with more than 50
 * queues, than a second for each 50. Each look says that a viewer watches. Without one,
 * nothing is read. */
#ifndef HF_DASHBOARD_TIMELINE_H
#define HF_DASHBOARD_TIMELINE_H

#include "dashboard/ask.h"
#include "seen/running.h"

void hf_timeline_free(hf_timeline *timeline);

/* GET runs */
hf_err hf_timeline_get(hf_query *ask, hf_reader *r);
/* The topic: what the last looks found. */
hf_err hf_timeline_news(hf_query *ask, hf_reader *r);

/* What it knows, without a look; NULL: nothing. Borrowed until the next look. */
const hf_running *hf_timeline_running(const hf_reader *r);

#endif
