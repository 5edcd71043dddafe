/* programs.h - jobs that are run by programs: one process for each, no shell.
 *
 *   start -> running -> leader ended -> group killed, leader reaped
 *               |                         -> what it wrote is read -> done_cb
 *               '-> time-out, end: TERM to the group -> KILL after a grace
 *
 * Each program leads a process group (worker/group/groups.h).
 *
 * Belongs to one worker; call from its loop's thread only, except hf_program_extend(). */
#ifndef HF_WORKER_PROGRAM_PROGRAMS_H
#define HF_WORKER_PROGRAM_PROGRAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "holdfast/error.h"
#include "holdfast/worker.h"
#include "worker/group/groups.h"
#include "worker/program/env.h"
#include "worker/program/verdict.h"

struct uv_loop_s;

typedef struct hf_programs hf_programs;
typedef struct hf_process hf_process;

typedef struct hf_programs_opts {
    /* A line of a program's output, without its newline but followed by a NUL, with the
     * `arg` of hf_programs_start(). stream: 1 or 2; 0 for the one line, the last, that
     * says how much was left out. May be NULL. */
    void (*on_line)(void *job_arg, int stream, const char *text, size_t len, void *arg);
    /* Bytes of its outputs as they come. May be NULL. */
    void (*on_output)(void *job_arg, const char *bytes, size_t len, void *arg);
    /* What its lines say beside its verdict and its result. May be NULL. */
    void (*on_update)(void *job_arg, const hf_program_update *update, void *arg);
    /* Some of a program's processes may not be signalled: they became another user. Once
     * for each program, with the `arg` of hf_programs_start(). May be NULL. */
    void (*on_denied)(void *job_arg, void *arg);
    void *arg;
} hf_programs_opts;

typedef void (*hf_program_done_cb)(const hf_program_result *result, void *arg);

/* `groups` is borrowed until cb of hf_programs_close(). HF_NOMEM. The caller owns *out
 * and ends it with hf_programs_close(). */
HF_MUSTCHECK hf_err hf_programs_new(hf_programs **out, struct uv_loop_s *loop,
                                    hf_groups *groups, const hf_programs_opts *opts);

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

/* Frees; NULL is fine. In done_cb or later, and only after the last call of
 * hf_program_extend() (drop the lease first). May come after hf_programs_close(). */
void hf_program_free(hf_process *process);

/* Kills and reaps every program (their done_cbs run), and calls cb (may be NULL) on the
 * loop's thread, or at once. Only hf_program_extend() and hf_program_free() may follow.
 * NULL: cb is not called. */
void hf_programs_close(hf_programs *programs, void (*cb)(void *arg), void *arg);

#endif
