/* programs.h - jobs that are run by programs: one process for each, no shell.
 *
 *   start -> running -> leader ended -> group killed, leader reaped -> outputs read ->
 * done_cb | time-out, end                                            (at most 200 ms)
 *               '-> TERM to the group -> KILL after a grace
 *
 * Each program leads a session and process group of its own, and the minder
 * (lock/minder.h) knows the group and its deadline before the program's first
 * instruction. The group never outlives its leader: what the leader leaves behind is
 * killed before the leader is reaped, so that the number of the group cannot belong to
 * anybody else meanwhile.
 *
 * Belongs to one worker; call from its loop's thread only, except hf_program_extend(). */
#ifndef HF_WORKER_PROGRAMS_H
#define HF_WORKER_PROGRAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holdfast/error.h"
#include "holdfast/worker.h"

struct uv_loop_s;

typedef struct hf_programs hf_programs;
typedef struct hf_process hf_process;

enum {
    HF_PROGRAM_LINE_MAX = 4096,       /* bytes of a line; a longer one is split */
    HF_PROGRAM_OUTPUT_MAX = 64 << 10, /* bytes of lines told of one job */
    HF_PROGRAM_ERROR_MAX = 4096,      /* bytes of an error text */
    HF_PROGRAM_DRAIN_MS = 200 /* how long outputs are read after the group was killed */
};

typedef struct hf_programs_opts {
    const char *minder_path; /* NULL: `holdfast`, found by PATH */
    uint32_t kill_grace_ms;  /* the minder's TERM comes so long before the deadline */
    /* A line of a program's output, without its newline but followed by a NUL, with the
     * `arg` of hf_programs_start(). stream: 1 or 2; 0 for the one line, the last, that
     * says how much was left out. May be NULL. */
    void (*on_line)(void *job_arg, int stream, const char *text, size_t len, void *arg);
    /* Some of a program's processes may not be signalled: they became another user. Once
     * for each program, with the `arg` of hf_programs_start(). May be NULL. */
    void (*on_denied)(void *job_arg, void *arg);
    /* The minder went, or came back. Never called from inside a call of the user's; not
     * for the first one, which is there when hf_programs_new() returns. May be NULL. */
    void (*on_ready)(bool ready, void *arg);
    void *arg;
} hf_programs_opts;

/* What the program is told of its job. All borrowed until done_cb. */
typedef struct hf_program_job {
    const char *id, *type, *queue;
    const char *fence; /* decimal digits */
    uint32_t attempt;  /* 1 the first time */
    const void *payload;
    size_t payload_len;
    uint64_t deadline_ns; /* of the lease, CLOCK_BOOTTIME; hf_program_extend() moves it */
    uint32_t timeout_ms;  /* the job's, else the program's; 0: none */
    int64_t deadline_unix_ms; /* end of the time-out for people's clocks; 0: not told */
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
    bool ended;         /* hf_program_end() had been called before it ended */
    bool asked;         /* the minder may have asked it to end; then it was extended */
    bool minder_failed; /* it was not executed because the minder could not be told: the
                           job's fault in no way */
    int status;
} hf_program_result;

typedef void (*hf_program_done_cb)(const hf_program_result *result, void *arg);

/* Starts the minder, and waits until it says that it is there (5 s at most). Must be
 * called before the worker starts threads. HF_SYSTEM, HF_NOMEM, HF_CONFIG (no such
 * command, or it is no minder); then `detail` (may be NULL) says why. The caller owns
 * *out and ends it with hf_programs_close(). */
HF_MUSTCHECK hf_err hf_programs_new(hf_programs **out, struct uv_loop_s *loop,
                                    const hf_programs_opts *opts,
                                    char detail[HF_DETAIL_SIZE]);

/* Whether the minder lives. Without it nothing is started. */
bool hf_programs_ready(const hf_programs *programs);

/* Starts a program. HF_OK: done_cb is called exactly once, on the loop's thread and never
 * from inside this call, also when hf_programs_close() comes first. HF_BUSY (the minder
 * is not ready), HF_SYSTEM (descriptors, processes; errno is kept), HF_NOMEM: nothing was
 * started and it never will be. `spec` is borrowed until done_cb. The caller owns *out
 * and ends it with hf_program_free(). */
HF_MUSTCHECK hf_err hf_programs_start(hf_programs *programs, const hf_program *spec,
                                      const hf_program_job *job,
                                      hf_program_done_cb done_cb, void *arg,
                                      hf_process **out);

/* From any thread, until hf_program_free(): the lease holds until deadline_ns; never
 * shortens. Nothing happens when the program has ended. */
void hf_program_extend(hf_process *process, uint64_t deadline_ns);

/* TERM to the group now, KILL after grace_ms (0: KILL at once). May be called again, to
 * end it sooner. Nothing happens when the program has ended. */
void hf_program_end(hf_process *process, uint32_t grace_ms);

/* Frees; NULL is fine. In done_cb or later, and only when nobody will call
 * hf_program_extend() any more (drop the lease first). May come after
 * hf_programs_close(). */
void hf_program_free(hf_process *process);

/* Kills and reaps every program (their done_cbs run), ends the minder, and calls cb (may
 * be NULL) on the loop's thread. Only hf_program_extend() and hf_program_free() may
 * follow. NULL: cb is not called. */
void hf_programs_close(hf_programs *programs, void (*cb)(void *arg), void *arg);

#endif
