/* child.h - one process of a pool: a long-lived program that gets jobs over a socket, in
 * the frames of docs/pipe.md. Its states are in child_state.h.
 *
 * It may have joined: a user has started it by hand. While it runs nothing the worker
 * lets it go and does not kill it. The end of its process is no crash of its runs,
 * because the user may have ended it.
 *
 * It leads a process group (worker/group/groups.h). Its death is judged by its pidfd,
 * never by the end of the socket, which a grandchild may hold. What it wrote before it
 * died counts.
 *
 * Knows neither Redis nor the worker: a job is its owner's pointer. Belongs to the loop;
 * no call below calls back, but hf_child_send() and hf_child_end(), which may. */
#ifndef HF_WORKER_POOL_CHILD_H
#define HF_WORKER_POOL_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "holdfast/error.h"
#include "worker/group/groups.h"
#include "worker/pool/child_state.h"
#include "worker/pool/door.h"
#include "worker/pool/frame.h"
#include "worker/pool/ready.h"
#include "worker/pool_spec.h"

typedef struct hf_child hf_child;

/* How a run ended, if its process has not. */
typedef struct hf_child_verdict {
    const hf_frame *frame;
    bool cancelled; /* the program was asked to end the run, `why` */
    hf_frame_why why;
    const char *refused; /* what it sent is refused: the job is dead; NULL: it is not */
} hf_child_verdict;

/* Why a run has no verdict. */
typedef enum hf_child_fate {
    HF_FATE_CRASHED,   /* the process ended, and the worker has not ended it */
    HF_FATE_CANCELLED, /* this run was asked to end, and the process has ended */
    HF_FATE_NEIGHBOUR, /* the process was killed because another run did not end */
    HF_FATE_STOPPED    /* it was told to stop, or the whole worker ends, or the process
                          never had the run */
} hf_child_fate;

typedef struct hf_child_end {
    hf_child_fate fate;
    hf_frame_why why;       /* CANCELLED */
    const void *culprit;    /* NEIGHBOUR: the job of that run; NULL: it had its verdict */
    const char *text;       /* how the process ended, with the end of its stderr */
    const char *stderr_end; /* that alone; "" : it wrote nothing */
    bool by_signal;         /* it ended by a signal that the worker has not sent */
} hf_child_end;

/* `arg` is that of hf_child_opts. */
typedef struct hf_child_calls {
    /* It offers this, which the callee owns. False with a sentence: it is refused. */
    bool (*ready)(hf_child *child, hf_ready *ready, char detail[HF_DETAIL_SIZE],
                  void *arg);
    void (*verdict)(hf_child *child, void *job, const hf_child_verdict *verdict,
                    void *arg);
    void (*update)(hf_child *child, void *job, const hf_frame *frame, void *arg);
    /* Its outputs. job: the one that runs, if there is one at most; NULL: not known. */
    void (*line)(hf_child *child, void *job, int stream, const char *text, size_t len,
                 void *arg);
    void (*output)(hf_child *child, void *job, const char *bytes, size_t len, void *arg);
    /* All that it has started has ended, and this run has no verdict. */
    void (*unanswered)(hf_child *child, void *job, const hf_child_end *end, void *arg);
    /* After all of these; then it is freed. */
    void (*gone)(hf_child *child, void *arg);
} hf_child_calls;

typedef struct hf_child_opts {
    uv_loop_t *loop;
    hf_groups *groups;
    hf_pool_spec *spec; /* it takes a reference */
    uint64_t deadline_ns;
    const hf_joined *joined;     /* NULL: it is started. Taken in any case */
    const hf_child_calls *calls; /* borrowed */
    void *arg;
} hf_child_opts;

/* HF_OK: `gone` will be called once, never from inside this call. HF_BUSY (no minder),
 * HF_SYSTEM (errno is kept), HF_NOMEM, HF_TOOBIG (its environment): nothing was started.
 */
HF_MUSTCHECK hf_err hf_child_start(hf_child **out, const hf_child_opts *opts);

typedef struct hf_child_job {
    void *job;
    hf_frame_job frame;               /* without its run and lengths */
    const void *payload, *checkpoint; /* borrowed until it is sent */
    size_t payload_len, checkpoint_len;
} hf_child_job;

/* Whether it takes another job now; whether it takes jobs at all, if not now. */
bool hf_child_can_take(const hf_child *child);
bool hf_child_takes_jobs(const hf_child *child);
/* hf_child_can_take() was true. `alone`: no process has another run, so the loop may wait
 * a moment for this one (hf_wire_spin()). */
void hf_child_send(hf_child *child, const hf_child_job *job, bool alone);
/* Asks it to end a run; KILL to the process after grace_ms (0: at once), if the verdict
 * has not come. May be called again, to end it sooner or for a stronger reason. */
void hf_child_cancel(hf_child *child, const void *job, hf_frame_why why,
                     uint32_t grace_ms);
/* Tells it to stop: it finishes its runs and exits. KILL grace_ms after its last run. */
void hf_child_stop(hf_child *child);
/* KILL to the process. Its runs are STOPPED. */
void hf_child_kill(hf_child *child);
/* Moves the minder's deadline (CLOCK_BOOTTIME); never back. */
void hf_child_extend(hf_child *child, uint64_t deadline_ns);
/* Now and then: asks a silent one with several runs whether it reads. True once: it has
 * not answered for long. */
bool hf_child_ping(hf_child *child, uint64_t now_ns);

pid_t hf_child_pid(const hf_child *child);
hf_child_state hf_child_state_of(const hf_child *child);
size_t hf_child_busy(const hf_child *child);     /* runs */
size_t hf_child_parallel(const hf_child *child); /* its slots; 0 before it is ready */
uint64_t hf_child_jobs(const hf_child *child);   /* that it has ended */
uint64_t hf_child_deadline_ns(const hf_child *child);
uint64_t hf_child_ready_ns(const hf_child *child); /* since when; 0: it never was */
/* Of `gone`: why it ended, for the log: "exited with status 1: ..." */
const char *hf_child_why(const hf_child *child);
/* It ended as it was told to: it was stopped, or left. */
bool hf_child_was_stopped(const hf_child *child);
/* It ended by itself before it was ready, and said by its status that this start cannot
 * succeed: it knows no version of the protocol, or its configuration is wrong. */
bool hf_child_refused(const hf_child *child);
/* It had a job, and kept to the protocol. */
bool hf_child_served(const hf_child *child);

#endif
