/* tasks.c - see tasks.h. */
#include "lock/tasks.h"

#include <stdio.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/detail.h"
#include "lock/callback.h"

/* ---- life ---- */

hf_err hf_tasks_open(hf_tasks *tasks, uv_loop_t *uv, const hf_tasks_hooks *hooks,
                     void *client)
{
    tasks->pid = getpid();
    tasks->hooks = hooks;
    return hf_run_loop_open(&tasks->run, uv, &hooks->run, client);
}

hf_err hf_tasks_start(hf_tasks *tasks)
{
    HF_ASSERT(uv_timer_init(tasks->run.uv, &tasks->timer) == 0);
    tasks->timer.data = tasks;
    return hf_run_loop_start(&tasks->run);
}

static void finish(hf_tasks *tasks)
{
    void (*cb)(void *arg) = tasks->on_closed;
    void *arg = tasks->closed_arg;
    hf_run_loop_close(&tasks->run);
    tasks->hooks->free(tasks->run.arg);
    if (cb != NULL)
        cb(arg);
}

void hf_tasks_close(hf_tasks *tasks, void (*cb)(void *arg), void *arg)
{
    if (hf_tasks_forked(tasks))
        return;
    /* In a callback, it would wait for the callback that waits for it. */
    HF_ASSERT(!tasks->run.owned || !hf_callback_inside(tasks->run.arg));
    tasks->on_closed = cb;
    tasks->closed_arg = arg;
    hf_run_loop_retire(&tasks->run);
    if (tasks->run.owned)
        finish(tasks);
}

void hf_tasks_closed(void *arg)
{
    hf_tasks *tasks = arg;
    if (--tasks->closing > 0)
        return;
    if (tasks->hooks->on_gone != NULL)
        tasks->hooks->on_gone(tasks->run.arg);
    if (!tasks->run.owned)
        finish(tasks);
}

static void on_timer_closed(uv_handle_t *handle)
{
    hf_tasks_closed(handle->data);
}

static void on_wakeup_closed(uv_handle_t *handle)
{
    hf_tasks_closed(HF_CONTAINER(handle, hf_tasks, run.wakeup));
}

void hf_tasks_end(hf_tasks *tasks, size_t more)
{
    tasks->ended = true;
    tasks->closing = 2 + more;
    uv_close((uv_handle_t *)&tasks->timer, on_timer_closed);
    hf_run_loop_close_wakeup(&tasks->run, on_wakeup_closed);
}

bool hf_tasks_forked(const hf_tasks *tasks)
{
    return tasks->pid != getpid();
}

hf_err hf_tasks_may_wait(const hf_tasks *tasks, char *detail)
{
    hf_err err = hf_callback_may_wait(tasks->run.arg, tasks->run.owned, detail);
    if (err == HF_OK && hf_tasks_forked(tasks))
        err = hf_say_err(detail, HF_FORKED);
    return err;
}

/* ---- tasks ---- */

static hf_err put(hf_tasks *tasks, hf_task *task, bool owes)
{
    hf_run_loop *run = &tasks->run;
    hf_run_loop_lock(run);
    bool closed = run->retired;
    if (!closed) {
        task->next = NULL;
        *(tasks->last != NULL ? &tasks->last->next : &tasks->first) = task;
        tasks->last = task;
        run->callbacks += owes;
    }
    hf_run_loop_unlock(run);
    return closed ? HF_CLOSED : HF_OK;
}

hf_err hf_tasks_submit(hf_tasks *tasks, hf_task *task, bool owes)
{
    hf_err err = put(tasks, task, owes);
    if (err == HF_OK)
        hf_run_loop_wake(&tasks->run);
    return err;
}

hf_err hf_tasks_await(hf_tasks *tasks, hf_task *task, bool owes, hf_run_waiter *waiter)
{
    hf_run_loop *run = &tasks->run;
    hf_run_loop_enter(run);
    hf_err err = put(tasks, task, owes);
    waiter->submits = true;
    if (err == HF_OK)
        HF_ASSERT(hf_run_loop_await(run, waiter, UINT64_MAX));
    hf_run_loop_leave(run);
    return err;
}

/* A caller that became the owner before a callback was owed leaves all to the service
 * thread, which is woken when it ends its turn. */
bool hf_tasks_run(hf_tasks *tasks)
{
    hf_run_loop *run = &tasks->run;
    hf_task *task = NULL;
    hf_run_loop_lock(run);
    bool retired = run->retired && !run->by_caller;
    if (!run->by_caller || run->callbacks == 0) {
        task = tasks->first;
        tasks->first = tasks->last = NULL;
    }
    hf_run_loop_unlock(run);
    while (task != NULL) {
        hf_task *next = task->next; /* the task may be gone when it has run */
        task->run(task);
        task = next;
    }
    return retired;
}

void hf_tasks_pay(hf_tasks *tasks)
{
    hf_run_loop_lock(&tasks->run);
    HF_ASSERT(!tasks->run.by_caller);
    tasks->run.callbacks--;
    hf_run_loop_unlock(&tasks->run);
    hf_run_loop_wake_done(&tasks->run); /* a callback may take its time */
}

void hf_tasks_turned(hf_tasks *tasks)
{
    tasks->hooks->on_turned(tasks->run.arg);
}

static void on_timer(uv_timer_t *timer)
{
    const hf_tasks *tasks = timer->data;
    tasks->hooks->on_time(tasks->run.arg);
}

void hf_tasks_set_timer(hf_tasks *tasks, uint64_t due_ns)
{
    uint64_t now_ns = hf_boot_ns();
    if (due_ns == UINT64_MAX) {
        (void)uv_timer_stop(&tasks->timer);
        return;
    }
    uv_update_time(tasks->run.uv);
    uint64_t ms = due_ns <= now_ns ? 0 : (due_ns - now_ns + HF_MS_NS - 1) / HF_MS_NS;
    (void)uv_timer_start(&tasks->timer, on_timer, ms, 0);
}

/* ---- handles ---- */

hf_err hf_tasks_handle_submit(hf_handle *handle, void (*run)(hf_task *task), bool owes)
{
    if (hf_tasks_forked(handle->tasks))
        return HF_FORKED;
    handle->owes = owes;
    handle->task.run = run;
    return hf_tasks_submit(handle->tasks, &handle->task, owes);
}

hf_err hf_tasks_handle_await(hf_handle *handle, void (*run)(hf_task *task),
                             hf_run_waiter *waiter)
{
    handle->task.run = run;
    return hf_tasks_await(handle->tasks, &handle->task, false, waiter);
}

void hf_tasks_handle_cancel(hf_handle *handle, void (*run)(hf_task *task))
{
    if (hf_tasks_forked(handle->tasks) || atomic_exchange(&handle->cancel_queued, true))
        return;
    handle->cancel_task.run = run;
    if (hf_tasks_submit(handle->tasks, &handle->cancel_task, false) != HF_OK)
        atomic_store(&handle->cancel_queued, false); /* closing cancels it */
}

void hf_tasks_handle_pay(hf_handle *handle)
{
    if (handle->owes)
        hf_tasks_pay(handle->tasks);
    handle->owes = false;
}

void hf_tasks_handle_answer(hf_handle *handle, hf_awaited *awaited, hf_err err,
                            const char *detail)
{
    awaited->err = err;
    (void)snprintf(awaited->detail, sizeof awaited->detail, "%s", detail);
    hf_run_loop_done(&handle->tasks->run, &awaited->waiter);
}
