/* guard.c - see guard.h. */
#include "lock/guard.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/detail.h"
#include "holdfast/lock.h"
#include "lock/minder/family.h"
#include "lock/minder/mark.h"
#include "lock/minder/minder.h"
#include "lock/watchdog/lease.h"

enum { ANSWER_MS = 100 }; /* for a renewal, before TERM */

/* ---- the thread ---- */

static void on_minder_closed(void *arg)
{
    (void)arg; /* the loop has nothing left, and ends */
}

static void on_wake(uv_async_t *wake)
{
    hf_guard *guard = wake->data;
    uv_close((uv_handle_t *)wake, NULL);
    hf_minder_close(atomic_load(&guard->minder), on_minder_closed, NULL);
}

static hf_err start_minder(hf_guard *guard)
{
    hf_minder *minder;
    hf_minder_opts opts = {.loop = &guard->loop, .path = guard->path, .any_thread = true};
    if (uv_loop_init(&guard->loop) != 0)
        return HF_SYSTEM;
    hf_err err = HF_SYSTEM;
    if (uv_async_init(&guard->loop, &guard->wake, on_wake) == 0) {
        guard->wake.data = guard;
        err = hf_minder_start(&minder, &opts, guard->detail);
        if (err == HF_OK) {
            atomic_store(&guard->minder, minder);
            return HF_OK;
        }
        uv_close((uv_handle_t *)&guard->wake, NULL);
        (void)uv_run(&guard->loop, UV_RUN_DEFAULT);
    }
    (void)uv_loop_close(&guard->loop);
    return err;
}

static void run_thread(void *arg)
{
    hf_guard *guard = arg;
    (void)hf_say_err(guard->detail, HF_SYSTEM); /* unless the minder says more */
    guard->err = start_minder(guard);
    bool started = guard->err == HF_OK;
    uv_sem_post(&guard->started);
    if (!started)
        return;
    (void)uv_run(&guard->loop, UV_RUN_DEFAULT);
    int failed = uv_loop_close(&guard->loop);
    HF_ASSERT(failed == 0);
}

/* Under the guard's lock. */
static hf_err start(hf_guard *guard, char *detail)
{
    sigset_t all, before;
    if (atomic_load(&guard->minder) != NULL)
        return HF_OK;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are not ours */
    int failed = uv_thread_create(&guard->thread, run_thread, guard);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed != 0)
        return hf_say_err(detail, HF_SYSTEM);
    uv_sem_wait(&guard->started);
    if (guard->err == HF_OK)
        return HF_OK;
    uv_thread_join(&guard->thread);
    return hf_say(detail, guard->err, "%s", guard->detail);
}

hf_err hf_guard_start(hf_guard *guard, char detail[HF_DETAIL_SIZE])
{
    uv_mutex_lock(&guard->lock);
    hf_err err = start(guard, detail);
    uv_mutex_unlock(&guard->lock);
    return err;
}

/* The leader's, not ours or a stranger's: no limit of a host is changed but that of the
 * child that it wants to be guarded. */
static void mark_leader(pid_t group)
{
    siginfo_t info;
    if (group != getpgrp() && hf_family_of(group).mark == 0 &&
        waitid(P_PID, (id_t)group, &info, WEXITED | WNOWAIT | WNOHANG) == 0)
        hf_mark_set(group, hf_mark_new(), 0);
}

hf_err hf_guard_hold(hf_guard *guard, hf_minded *minded, pid_t group,
                     uint64_t deadline_ns, uint32_t grace_ms)
{
    mark_leader(group);
    return hf_minder_hold(atomic_load(&guard->minder), minded, group, deadline_ns,
                          grace_ms * HF_MS_NS);
}

/* ---- life ---- */

hf_err hf_guard_init(hf_guard *guard, const char *path)
{
    guard->path = path == NULL ? NULL : strdup(path);
    if (path != NULL && guard->path == NULL)
        return HF_NOMEM;
    atomic_init(&guard->minder, NULL);
    if (uv_mutex_init(&guard->lock) == 0) {
        if (uv_sem_init(&guard->started, 0) == 0)
            return HF_OK;
        uv_mutex_destroy(&guard->lock);
    }
    free(guard->path);
    return HF_SYSTEM;
}

void hf_guard_done(hf_guard *guard)
{
    hf_minder *minder = atomic_load(&guard->minder);
    if (minder != NULL) {
        (void)uv_async_send(&guard->wake);
        uv_thread_join(&guard->thread);
        hf_minder_free(minder);
    }
    uv_sem_destroy(&guard->started);
    uv_mutex_destroy(&guard->lock);
    free(guard->path);
}

void hf_guard_extend(hf_guard *guard, hf_minded *minded, uint64_t deadline_ns)
{
    hf_minder *minder = atomic_load(&guard->minder);
    if (minder != NULL)
        hf_minder_extend(minder, minded, deadline_ns);
}

void hf_guard_ask(hf_guard *guard, hf_minded *minded)
{
    hf_minder *minder = atomic_load(&guard->minder);
    if (minder != NULL)
        hf_minder_end(minder, minded);
}

bool hf_guard_asked(hf_guard *guard, hf_minded *minded)
{
    hf_minder *minder = atomic_load(&guard->minder);
    return minder != NULL && hf_minder_asked(minder, minded);
}

uint32_t hf_lock_grace_max(uint32_t lease_ms)
{
    uint64_t usable_ms = hf_lease_deadline(0, lease_ms) / HF_MS_NS;
    uint64_t needed_ms = lease_ms / 3 + 1 + ANSWER_MS;
    uint64_t room_ms = usable_ms > needed_ms ? usable_ms - needed_ms : 0;
    if (lease_ms < HF_LOCK_GUARD_LEASE_MIN_MS)
        return 0;
    return room_ms < lease_ms / 2 ? (uint32_t)room_ms : lease_ms / 2;
}

bool hf_guard_has_room(uint32_t lease_ms, uint32_t grace_ms)
{
    return lease_ms >= HF_LOCK_GUARD_LEASE_MIN_MS &&
           grace_ms <= hf_lock_grace_max(lease_ms);
}

bool hf_guard_fits(hf_guard *guard, const hf_minded *minded, uint32_t lease_ms)
{
    hf_minder *minder = atomic_load(&guard->minder);
    int64_t grace_ms = minder == NULL ? -1 : hf_minder_grace_ms(minder, minded);
    return grace_ms < 0 || hf_guard_has_room(lease_ms, (uint32_t)grace_ms);
}

void hf_guard_end(hf_guard *guard, hf_minded *minded)
{
    hf_minder *minder = atomic_load(&guard->minder);
    if (minder != NULL)
        hf_minder_remove(minder, minded);
}

bool hf_guard_kill_family(hf_guard *guard, const hf_minded *minded, uint32_t timeout_ms)
{
    hf_minder *minder = atomic_load(&guard->minder);
    return minder == NULL || hf_minder_kill_family(minder, minded, timeout_ms);
}

void hf_guard_kill(hf_guard *guard)
{
    hf_minder *minder = atomic_load(&guard->minder);
    if (minder != NULL)
        hf_minder_kill(minder);
}
