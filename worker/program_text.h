/* program_text.h - the texts that a program receives, and those that it writes. Pure: no
 * descriptors.
 *
 * Its environment: HOLDFAST_* describes the job, and a few variables of the worker are
 * passed on. Its output: whole lines go to the log, up to a limit, and the end of stderr
 * is the error text; the memory for it is bounded. Its verdict (program_said.h):
 *
 * exit 0 means done, exit 65 dead, and any other end retry. A verdict line has the word
 * done, retry, dead, release or cancel. It overrules the exit status, but not a signal or
 * a time-out: those are always retry. */
#ifndef HF_WORKER_PROGRAM_TEXT_H
#define HF_WORKER_PROGRAM_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "holdfast/worker.h"
#include "lock/minder/spawn.h"
#include "worker/program_said.h"

enum {
    HF_PROGRAM_LINE_MAX = 4096,      /* bytes of a line; a longer one is split */
    HF_PROGRAM_OUTPUT_MAX = 64 << 10 /* bytes of lines told of one job */
};

/* The job as the program sees it. All borrowed until done_cb. */
typedef struct hf_program_job {
    const char *id, *type, *queue;
    const char *fence; /* decimal digits */
    uint32_t attempt;  /* 1 the first time */
    uint64_t identity; /* a hash that no other job has, here or at another Redis */
    bool ran_before;   /* it may have: what is left of that run ends first */
    const void *payload;
    size_t payload_len;
    uint64_t deadline_ns; /* of the lease, CLOCK_BOOTTIME; hf_program_extend() moves it */
    uint32_t timeout_ms;  /* the job's, else the program's; 0: none */
    int64_t scheduled_unix_ms; /* its tick; 0: of no schedule */
    int64_t deadline_unix_ms;  /* end of the time-out for people's clocks; 0: not told */
    const void *checkpoint;    /* of an earlier run */
    size_t checkpoint_len;
} hf_program_job;

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
    bool asked;    /* the minder may have asked it to end; then it was extended */
    bool withheld; /* it was not executed because the minder could not be told, or
                      because its lease was over: the job's fault in no way */
    int status;
    const char *result; /* NULL: none. Borrowed as `error` */
    size_t result_len;
    bool result_is_json;
} hf_program_result;

/* ---- the environment ---- */

enum { HF_PROGRAM_ENV_MAX = 256 }; /* variables */

typedef struct hf_program_env {
    hf_buf text;                        /* owned */
    char *vars[HF_PROGRAM_ENV_MAX + 1]; /* into text, ends with NULL */
} hf_program_env;

/* HF_NOMEM, HF_TOOBIG. End with hf_program_env_done() in any case. */
HF_MUSTCHECK hf_err hf_program_env_init(hf_program_env *env, const hf_program *spec,
                                        const hf_program_job *job);
void hf_program_env_done(hf_program_env *env);

/* ---- its output ---- */

/* As hf_programs_opts.on_line; `arg` is hf_output.arg. */
typedef void (*hf_output_line_fn)(int stream, const char *text, size_t len, void *arg);

typedef struct hf_output_line {
    size_t len;
    char text[HF_PROGRAM_LINE_MAX + 1];
} hf_output_line;

typedef struct hf_output {
    hf_output_line_fn on_line; /* may be NULL */
    void *arg;
    size_t told;            /* bytes of lines that were told, with their newlines */
    uint64_t left_out;      /* bytes; once it is not 0 nothing more is told */
    hf_output_line line[2]; /* the beginning of the next line of stdout, of stderr */
    uint64_t tail_bytes;    /* of stderr, in all */
    char tail[HF_PROGRAM_ERROR_MAX]; /* its last bytes, at tail_bytes modulo its size */
} hf_output;

void hf_output_init(hf_output *output, hf_output_line_fn on_line, void *arg);

/* stream: 1 or 2. */
void hf_output_feed(hf_output *output, int stream, const char *bytes, size_t len);

/* Tells what is left of lines without an end, and how much was left out. */
void hf_output_end(hf_output *output);

/* The end of stderr, without blanks at its end, from the beginning of a character on, NUL
 * bytes as blanks. Answers its length. */
size_t hf_output_error(const hf_output *output, char out[HF_PROGRAM_ERROR_MAX + 1]);

/* ---- the end of its job ---- */

enum { HF_EXIT_DEAD = 65 };

/* Why a program was not executed. */
void hf_program_not_started(const hf_program *spec, const hf_spawn_fault *fault,
                            char error[HF_PROGRAM_ERROR_MAX + 1]);

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
