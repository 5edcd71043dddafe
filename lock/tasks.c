/* tasks.c - see tasks.h. */
#include "lock/tasks.h"

#include "base/base.h"
#include "base/clock.h"

static hf_err put(hf_tasks *tasks, hf_task *task, bool owes)
{
    hf_run_loop *run = tasks->run;
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
        hf_run_loop_wake(tasks->run);
    return err;
}

hf_err hf_tasks_await(hf_tasks *tasks, hf_task *task, bool owes, hf_run_waiter *waiter)
{
    hf_run_loop *run = tasks->run;
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
    hf_run_loop *run = tasks->run;
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
    hf_run_loop_lock(tasks->run);
    HF_ASSERT(!tasks->run->by_caller);
    tasks->run->callbacks--;
    hf_run_loop_unlock(tasks->run);
    hf_run_loop_tell(tasks->run); /* a callback may take its time */
}

void hf_tasks_set_timer(uv_timer_t *timer, uv_timer_cb cb, uint64_t due_ns)
{
    uint64_t now_ns = hf_boot_ns();
    if (due_ns == UINT64_MAX) {
        (void)uv_timer_stop(timer);
        return;
    }
    uv_update_time(timer->loop);
    uint64_t ms = due_ns <= now_ns ? 0 : (due_ns - now_ns + HF_MS_NS - 1) / HF_MS_NS;
    (void)uv_timer_start(timer, cb, ms, 0);
}
