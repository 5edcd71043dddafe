/* play.h - plays the worker's part of one case with a program. */
#ifndef HF_CLI_CONFORM_PLAY_H
#define HF_CLI_CONFORM_PLAY_H

#include <stdint.h>

#include "base/buf.h"
#include "cli/conform/cases.h"
#include "worker/pool/ready.h"

typedef enum hf_play_end { HF_PLAY_PASSED, HF_PLAY_FAILED, HF_PLAY_SKIPPED } hf_play_end;

enum { HF_PLAY_WHY_SIZE = 512, HF_PLAY_STDERR_MAX = 2048 };

typedef struct hf_play {
    char *const *argv;
    int64_t timeout_ms; /* of each answer */
    hf_play_end end;
    char why[HF_PLAY_WHY_SIZE];              /* unless it passed */
    char stderr_end[HF_PLAY_STDERR_MAX + 1]; /* the end of what it printed there */
    int exec_error;                          /* it could not be executed; 0: it was */
    int error; /* the system refused a process or memory; 0: it did not */
} hf_play;

/* Starts the program only for its `ready`, which the caller owns; NULL: `end` is not
 * PASSED. */
hf_ready *hf_play_ready(hf_play *play);

/* Plays a case. ready: what hf_play_ready() gave. */
void hf_play_case(hf_play *play, const hf_conform_case *one, const hf_ready *ready);

#endif
