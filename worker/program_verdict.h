/* program_verdict.h - what becomes of a job whose program has ended. Pure.
 *
 *   exit 0 done, exit 65 dead, any other end retry; a verdict line goes before the exit
 * status, but not before a signal or a time-out: those are always retry. */
#ifndef HF_WORKER_PROGRAM_VERDICT_H
#define HF_WORKER_PROGRAM_VERDICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "worker/programs.h"

enum { HF_VERDICT_LINE_MAX = 16 << 10, HF_EXIT_DEAD = 65 };

/* {"verdict":"done|retry|dead","in":"30s","error":"..."}; each may be missing, others are
 * ignored. */
typedef struct hf_verdict_line {
    bool has_verdict;
    hf_verdict verdict;
    bool has_retry_in;
    int64_t retry_in_ms;
    char error[HF_PROGRAM_ERROR_MAX + 1];
} hf_verdict_line;

/* Reads the first line of the text; blank text is a line that says nothing. False: it is
 * no such line, `error` says why and nothing else is set. */
bool hf_verdict_line_read(hf_verdict_line *out, const char *text, size_t len);

/* How a program ended. */
typedef struct hf_program_end_state {
    bool by_signal, timed_out;
    int status;
    uint32_t timeout_ms;
    const char *stderr_end; /* may be "" */
} hf_program_end_state;

/* Fills verdict, retry_in and error of the result; the text goes to `error`. */
void hf_program_judge(hf_program_result *result, const hf_program_end_state *end,
                      const hf_verdict_line *line, char error[HF_PROGRAM_ERROR_MAX + 1]);

#endif
