/* slices.h - work that is done slice by slice: a bar on a terminal, nothing in a pipe;
 * and INT or TERM (^C) end it after the slice, so that what was done can be told. A
 * second one ends the command at once. */
#ifndef HF_CLI_SLICES_H
#define HF_CLI_SLICES_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

#include "cli/progress.h"

typedef struct hf_slices {
    hf_progress bar;
    const char *what; /* "jobs" */
    bool begun, cut;  /* cut: it was ended before it was complete */
    struct sigaction before[2];
} hf_slices;

void hf_slices_start(hf_slices *slices, const char *what);

/* An hf_progress_cb, with the hf_slices as its `arg`. */
bool hf_slices_progress(size_t done, size_t total, void *slices);

/* Takes the bar away. 0, or what the command ends with because of a signal: 128 + its
 * number (main.c then ends by it). */
int hf_slices_end(hf_slices *slices);

#endif
