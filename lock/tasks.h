/* tasks.h - what a lock client and a client of several servers have in common: a run
 * loop, the work that any thread submits to its owner, one timer, and the end.
 *
 * Tasks run in the order in which they came. A task may lead to a callback of the user's
 * later: from then on one callback is owed, until it is about to be called. Only the
 * service thread takes tasks while a callback is owed (R4 of redis/run_loop.h).
 *
 * A handle (of a lock or a set) has one task, which acquires and later releases it, and
 * one that cancels it. */
#ifndef HF_LOCK_TASKS_H
#define HF_LOCK_TASKS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "redis/run_loop.h"

typedef struct hf_task {
    struct hf_task *next;
    void (*run)(struct hf_task *task);
} hf_task;

typedef struct hf_tasks_hooks {
    hf_run_hooks run; /* `submit` calls hf_tasks_run() */
    void (*on_time)(void *arg);
    void (*on_turned)(void *arg); /* of hf_tasks_turned() */
    void (*on_gone)(void *arg);   /* on the loop: all of it is closed; may be NULL */
    void (*free)(void *arg);      /* the last call */
} hf_tasks_hooks;

typedef struct hf_tasks {
    pid_t pid;
    const hf_tasks_hooks *hooks;
    hf_run_loop run; /* its arg is the client, which owns this */
    uv_timer_t timer;
    hf_task *first, *last; /* under the lock of the run loop */
    bool ended;            /* its handles are being closed, or are gone */
    size_t closing; /* how many of its handles and of the client's are not closed */
    void (*on_closed)(void *arg);
    void *closed_arg;
} hf_tasks;

/* ---- life ---- */

/* `uv` NULL: a loop of its own. Puts nothing on the loop. HF_SYSTEM: nothing is left. */
HF_MUSTCHECK hf_err hf_tasks_open(hf_tasks *tasks, uv_loop_t *uv,
                                  const hf_tasks_hooks *hooks, void *client);
/* See hf_run_loop_start(). After HF_SYSTEM: hf_tasks_close(). */
HF_MUSTCHECK hf_err hf_tasks_start(hf_tasks *tasks);
/* Retires the run loop: its submit hook gives everything back and then calls
 * hf_tasks_end(). At the end the client is freed and cb (may be NULL) is called. On an
 * own loop this waits for it, and must not be called inside a callback of the client. */
void hf_tasks_close(hf_tasks *tasks, void (*cb)(void *arg), void *arg);
/* On the loop: closes the handles. `more` others are being closed by the client, which
 * says so for each by hf_tasks_closed(). */
void hf_tasks_end(hf_tasks *tasks, size_t more);
void hf_tasks_closed(void *tasks);

bool hf_tasks_forked(const hf_tasks *tasks);
/* Whether a call may wait: HF_OK. Else HF_INVALID or HF_FORKED, and `detail` says why. */
HF_MUSTCHECK hf_err hf_tasks_may_wait(const hf_tasks *tasks, char *detail);

/* ---- tasks ---- */

/* From any thread. `owes`: it leads to a callback. HF_CLOSED: the run loop is retired,
 * and the task is not taken. */
HF_MUSTCHECK hf_err hf_tasks_submit(hf_tasks *tasks, hf_task *task, bool owes);
/* The same, and returns when the waiter is done. Not on the loop. */
HF_MUSTCHECK hf_err hf_tasks_await(hf_tasks *tasks, hf_task *task, bool owes,
                                   hf_run_waiter *waiter);

/* In the submit hook: runs what came. True: the run loop is retired, so nothing more will
 * come. */
bool hf_tasks_run(hf_tasks *tasks);
/* On the loop: a callback that was owed is about to be called, or never will be. */
void hf_tasks_pay(hf_tasks *tasks);

/* On the loop: at the end of every action there that may change what is due. Calls
 * on_turned. */
void hf_tasks_turned(hf_tasks *tasks);
/* On the loop: on_time is called at due_ns, or not at all (UINT64_MAX). */
void hf_tasks_set_timer(hf_tasks *tasks, uint64_t due_ns);

/* ---- handles ---- */

typedef struct hf_handle {
    hf_tasks *tasks;
    hf_task task, cancel_task;
    bool owes; /* a callback of its user's, which only the service thread calls */
    atomic_bool cancel_queued;
} hf_handle;

/* A caller that waits, and its answer. */
typedef struct hf_awaited {
    hf_run_waiter waiter;
    hf_err err;
    char detail[HF_DETAIL_SIZE];
} hf_awaited;

/* HF_OK: the task will run. HF_FORKED, HF_CLOSED: it will not. */
HF_MUSTCHECK hf_err hf_tasks_handle_submit(hf_handle *handle, void (*run)(hf_task *task),
                                           bool owes);
/* The same, and returns when the waiter is done. */
HF_MUSTCHECK hf_err hf_tasks_handle_await(hf_handle *handle, void (*run)(hf_task *task),
                                          hf_run_waiter *waiter);
void hf_tasks_handle_cancel(hf_handle *handle, void (*run)(hf_task *task));
/* On the loop, before the callback that it owes. */
void hf_tasks_handle_pay(hf_handle *handle);
/* On the loop: the answer for a caller that waits. */
void hf_tasks_handle_answer(hf_handle *handle, hf_awaited *awaited, hf_err err,
                            const char *detail);

#endif
