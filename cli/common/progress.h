/* progress.h - a bar on a terminal while something takes long; nothing in a pipe. */
#ifndef HF_CLI_COMMON_PROGRESS_H
#define HF_CLI_COMMON_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct hf_progress {
    bool shown;       /* standard error is a terminal */
    const char *what; /* "jobs" */
    uint64_t total;   /* of `done`; 0: not known, then only the count is shown */
    uint64_t last_ns;
    bool drawn;
} hf_progress;

void hf_progress_start(hf_progress *progress, const char *what, uint64_t total);
/* Draws at most ten times a second. */
void hf_progress_show(hf_progress *progress, uint64_t done, uint64_t count);
/* Takes the bar away; before anything else is written there. */
void hf_progress_end(hf_progress *progress);

#endif
