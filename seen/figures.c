/* figures.c - see figures.h. */
#include "seen/figures.h"

#include <string.h>

#define COUNTER(field, text)                                                             \
    {                                                                                    \
        .name = #field, .metric = "holdfast_jobs_" #field "_total", .help = (text),      \
        .at = offsetof(hf_queue_stats, field)                                            \
    }

const hf_figure hf_figures[] = {
    COUNTER(enqueued, "Jobs that were accepted."),
    COUNTER(done, "Jobs that were done."),
    COUNTER(failed, "Attempts that failed."),
    COUNTER(lost, "Verdicts that came after the lease."),
    COUNTER(unsure, "Verdicts whose answer was lost."),
    COUNTER(crashed, "Runs whose worker or process died."),
    COUNTER(cancelled, "Jobs that were cancelled."),
    COUNTER(deleted, "Jobs that were deleted."),
    COUNTER(expired, "Jobs that did not start in time."),
    COUNTER(replaced, "Jobs whose place the parked job took."),
    COUNTER(healed, "Unique keys whose holder had been lost."),
    {NULL, NULL, NULL, 0},
};

int64_t hf_figures_of(const hf_figure *figure, const hf_queue_stats *stats)
{
    int64_t n;
    memcpy(&n, (const char *)stats + figure->at, sizeof n);
    return n;
}
