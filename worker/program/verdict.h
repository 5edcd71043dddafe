/* verdict.h - how the end of a program becomes the verdict of its job.
 *
 * exit 0 means done, exit 65 dead, and any other end retry. A verdict line (said.h) has
 * the word done, retry, dead, release or cancel. It overrules the exit status, but not a
 * signal or a time-out: those are always retry. */
#ifndef HF_WORKER_PROGRAM_VERDICT_H
#define HF_WORKER_PROGRAM_VERDICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lock/minder/spawn.h"
#include "worker/program/said.h"

typedef struct hf_program_result {
    hf_verdict verdict;
    bool has_retry_in; /* the verdict line said when */
    int64_t retry_in_ms;
    const char
        *error;     /* at most HF_PROGRAM_ERROR_MAX bytes, not always UTF-8; never NULL,
                       "" if there is none. Borrowed until done_cb returns */
    bool started;   /* false: it could not be executed, or the minder was not told */
    bool by_signal; /* `status` is the signal, else the exit status */
    bool timed_out;
    bool ended;    /* hf_program_end() had been called before it ended */
    bool asked;    /* the minder may have asked it to end just before */
    bool withheld; /* it was not executed because the minder could not be told, or
                      because its lease was over: the job's fault in no way */
    int status;
    const char *result; /* NULL: none. Borrowed as `error` */
    size_t result_len;
    bool result_is_json;
} hf_program_result;

enum { HF_EXIT_DEAD = 65 };

/* Why a program was not executed. */
void hf_program_verdict_not_started(const hf_program *spec, const hf_spawn_fault *fault,
                                    char error[HF_PROGRAM_ERROR_MAX + 1]);

/* How a program ended. */
typedef struct hf_program_end_state {
    bool by_signal, timed_out;
    int status;
    uint32_t timeout_ms;
    const char *stderr_end; /* may be "" */
} hf_program_end_state;

/* Fills verdict, retry_in and error of the result; the text goes to `error`. */
void hf_program_verdict_decide(hf_program_result *result, const hf_program_end_state *end,
                               const hf_verdict_line *line,
                               char error[HF_PROGRAM_ERROR_MAX + 1]);

#endif
