/* process.h - one program that runs, as programs.c and process.c share it. Private to the
 * two. */
#ifndef HF_WORKER_PROCESS_H
#define HF_WORKER_PROCESS_H

#include <sys/types.h>
#include <uv.h>

#include "base/buf.h"
#include "lock/minder.h"
#include "lock/spawn.h"
#include "worker/program_text.h"
#include "worker/programs.h"

enum { HF_PROCESS_PIPES = 4, HF_PROCESS_READ_SIZE = 64 << 10 };

/* By the descriptor that the program sees. */
typedef enum hf_process_pipe_name {
    HF_PIPE_IN,
    HF_PIPE_OUT,
    HF_PIPE_ERR,
    HF_PIPE_VERDICT
} hf_process_pipe_name;

typedef struct hf_process_pipe {
    hf_process *process;
    uv_poll_t poll;
    bool polled; /* it has its handle */
    int fd;      /* our end; -1: closed */
} hf_process_pipe;

struct hf_process {
    hf_programs *owner;
    hf_process *prev, *next; /* in owner->running */
    const hf_program *spec;  /* borrowed */
    hf_program_done_cb done_cb;
    void *arg;
    const char *payload; /* borrowed: what was not written yet */
    size_t payload_left;
    uint32_t timeout_ms;

    pid_t pid; /* and its group; 0: not started, or reaped */
    int pidfd;
    hf_spawn_fault fault; /* why it was not executed */
    hf_minded minded;
    hf_process_pipe pipes[HF_PROCESS_PIPES];
    uv_poll_t watch;  /* on pidfd */
    uv_timer_t timer; /* for the earliest of these three, CLOCK_BOOTTIME; 0: none */
    uint64_t timeout_ns, kill_ns, drained_ns;
    int handles; /* that are not closed yet */
    bool has_timer, watched, abandoned, reaped, closing, done;
    bool timed_out, ended, by_signal;
    bool denied; /* it was told that a signal was not allowed */
    int status;
    hf_output output;
    hf_buf verdict; /* what came on descriptor 3 */
};

struct hf_programs {
    uv_loop_t *loop;
    hf_programs_opts opts;
    hf_minder *minder; /* owned; it stays until the last process was freed */
    hf_process *running;
    size_t n_processes; /* not freed */
    bool closing, minder_closing, closed;
    void (*closed_cb)(void *arg);
    void *closed_arg;
    char bytes[HF_PROCESS_READ_SIZE]; /* for one read at a time */
};

/* -- process.c, in the order of a start; each may be followed by abandon -- */
hf_process *hf_process_new(hf_programs *programs, const hf_program *spec,
                           const hf_program_job *job, hf_program_done_cb done_cb,
                           void *arg);
HF_MUSTCHECK hf_err hf_process_prepare(hf_process *p); /* its pipes are open */
HF_MUSTCHECK hf_err hf_process_run(hf_process *p,
                                   const hf_program_job *job); /* it was forked */
void hf_process_abandon(hf_process *p);         /* it was not started: nothing is left */
void hf_process_close(hf_process *p);           /* all its handles; then it is done */
void hf_process_on_closed(uv_handle_t *handle); /* whose data is the process */

/* -- programs.c: a process has ended, or was freed -- */
void hf_programs_settle(hf_programs *programs);

#endif
