/* pace.c - worker/run/pace.h. */
#include "worker/run/pace.h"

enum {
    AHEAD_MAX = 800, /* jobs claimed ahead */
    AHEAD_MS = 3     /* this much work is claimed ahead for each slot */
};

void hf_pace_learn(double *mean_ns, uint64_t total_ns, size_t n)
{
    double mean = (double)total_ns / (double)n;
    double share = n >= 16 ? 0.5 : (double)n / 32;
    *mean_ns = *mean_ns <= 0 ? mean : *mean_ns * (1 - share) + mean * share;
}

size_t hf_pace_ahead(double mean_ns, size_t slots)
{
    if (mean_ns <= 0)
        return 0;
    double n = (double)slots * (AHEAD_MS * 1e6) / mean_ns;
    return n > AHEAD_MAX ? AHEAD_MAX : (size_t)n;
}
