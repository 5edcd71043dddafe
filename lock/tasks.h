/* tasks.h - work that any thread submits, and that the owner of a run loop does.
 *
 * Tasks run in the order in which they came. A task may lead to a callback of the user's
 * later: from then on one callback is owed, until it is about to be called. Only the
 * service thread takes tasks while a callback is owed (R4 of redis/run_loop.h). */
#ifndef HF_LOCK_TASKS_H
#define HF_LOCK_TASKS_H

#include <stdbool.h>
#include <stdint.h>

#include "redis/run_loop.h"

typedef struct hf_task {
    struct hf_task *next;
    void (*run)(struct hf_task *task);
} hf_task;

typedef struct hf_tasks {
    hf_run_loop *run;
    hf_task *first, *last; /* under the lock of the run loop */
} hf_tasks;

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

/* On the loop: the timer runs at due_ns, or not at all (UINT64_MAX). */
void hf_tasks_set_timer(uv_timer_t *timer, uv_timer_cb cb, uint64_t due_ns);

#endif
