/* slices.h - work in slices, with a progress bar on a terminal and none in a pipe. INT
 * (^C), TERM or HUP ends the work after the current slice, and the command still reports
 * what it did (cli/stop.h). */
#ifndef HF_CLI_COMMON_SLICES_H
#define HF_CLI_COMMON_SLICES_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/cli.h"
#include "cli/common/progress.h"

typedef struct hf_slices {
    hf_progress bar;
    const char *what; /* "jobs" */
    bool begun, cut;  /* cut: it was ended before it was complete */
} hf_slices;

void hf_slices_start(hf_slices *slices, const char *what);

/* An hf_progress_cb, with the hf_slices as its `arg`. */
bool hf_slices_progress(size_t done, size_t total, void *slices);

/* The work done, for a line ("q: 2 jobs removed") or an object ({"queue", "removed"}). */
typedef struct hf_slices_words {
    const char *queue;      /* NULL: no queue has such jobs */
    const char *key;        /* "removed" */
    const char *one, *many; /* "job removed", "jobs removed" */
    const char *pace;       /* said behind `many`; or NULL */
} hf_slices_words;

void hf_slices_tell(const hf_cli *cli, const hf_slices_words *words, size_t n,
                    bool complete);

/* Removes the bar, and reports the number of jobs and the error: `err` and `n` are the
 * admin's. Returns the exit code of the command: 128 + N after signal N (main.c then ends
 * by it). */
int hf_slices_end(hf_slices *slices, const hf_cli *cli, const hf_slices_words *words,
                  hf_err err, size_t n);

#endif
