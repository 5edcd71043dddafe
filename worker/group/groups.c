/* groups.c - worker/group/groups.h. */
#include "worker/group/groups.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/base.h"
#include "base/clock.h"
#include "lock/minder/mark.h"

#ifndef P_PIDFD
#define P_PIDFD 3
#endif

enum {
    CLOSING_MS = 1000, /* for the end of a family, when all groups are to end */
    OBEYS_MS = 5000    /* from TERM to the end of a program that obeys, or kill_grace */
};

struct hf_groups {
    uv_loop_t *loop;
    hf_groups_opts opts;
    hf_minder *minder;   /* owned; it stays until the last user has left */
    hf_sweeper *sweeper; /* owned */
    hf_group *running;
    size_t users, not_done; /* hf_groups_enter() and the other two */
    hf_cgroups cgroups;     /* that were left */
    bool closing, minder_closing, closed;
};

static void settle(hf_groups *groups);

/* ---- signals ---- */

static void tell_denied(hf_group *group)
{
    if (!group->denied_reported && group->calls->denied != NULL)
        group->calls->denied(group);
    group->denied_reported = true;
}

/* A process that became another user (sudo) outlives its lease, if it is in no cgroup. */
void hf_group_signal(hf_group *group, int sig)
{
    if (group->joined)
        hf_group_signal_leader(group, sig);
    else if (!hf_spawn_signal_child(group->pid, group->pidfd, sig) && errno == EPERM &&
             group->cgroup.mark == 0)
        tell_denied(group);
}

void hf_group_signal_leader(const hf_group *group, int sig)
{
    if (group->pid != 0 && !group->over)
        (void)hf_spawn_signal(group->pidfd, sig);
}

static void on_kill(uv_timer_t *timer)
{
    hf_group *group = timer->data;
    if (!hf_group_check(group))
        hf_group_signal(group, SIGKILL);
}

void hf_group_end(hf_group *group, uint32_t grace_ms)
{
    if (group->pid == 0 || group->over)
        return;
    if (grace_ms == 0) {
        hf_group_signal(group, SIGKILL);
        uv_timer_stop(&group->timer);
        return;
    }
    if (!group->asked) {
        hf_group_signal(group, SIGTERM);
        hf_sweeper_ask(group->owner->sweeper, &group->family);
    }
    uv_update_time(group->owner->loop);
    if (!group->asked || uv_timer_get_due_in(&group->timer) > grace_ms)
        uv_timer_start(&group->timer, on_kill, grace_ms, 0);
    group->asked = true;
}

void hf_group_extend(hf_group *group, uint64_t deadline_ns)
{
    hf_minder_extend(group->owner->minder, &group->minded, deadline_ns);
}

/* ---- its end ---- */

static void leave_running(hf_group *group)
{
    if (group->prev != NULL)
        group->prev->next = group->next;
    else
        group->owner->running = group->next;
    if (group->next != NULL)
        group->next->prev = group->prev;
}

/* Both its handles are closed: nothing of libuv knows it any more. */
static void on_closed(uv_handle_t *handle)
{
    hf_group *group = handle->data;
    hf_groups *owner = group->owner;
    if (--group->handles > 0)
        return;
    hf_spawn_close_fd(&group->pidfd);
    leave_running(group);
    group->calls->gone(group); /* may free it */
    settle(owner);
}

static void reap_child(hf_group *group)
{
    hf_minder_remove(group->owner->minder, &group->minded);
    siginfo_t info;
    while (waitid(P_PIDFD, (id_t)group->pidfd, &info, WEXITED) < 0 && errno == EINTR)
        continue;
    hf_cgroups_leave(&group->owner->cgroups, &group->cgroup);
    if (hf_spawn_left_denied(group->pid, group->pidfd))
        tell_denied(group);
}

static void reap(hf_group *group)
{
    if (!group->joined)
        reap_child(group);
    group->pid = 0;
    uv_close((uv_handle_t *)&group->timer, on_closed);
    uv_close((uv_handle_t *)&group->watch, on_closed);
}

static void on_family_gone(hf_sweep *sweep)
{
    hf_group *group = HF_CONTAINER(sweep, hf_group, sweep);
    if (sweep->family.denied)
        tell_denied(group);
    reap(group);
}

static void start_sweep(hf_groups *groups, hf_sweep *sweep)
{
    uint64_t ms = groups->closing ? CLOSING_MS : HF_FAMILY_KILL_MS;
    atomic_store(&sweep->until_ns, hf_boot_ns() + ms * HF_MS_NS);
    hf_sweeper_kill(groups->sweeper, sweep);
}

void hf_groups_sweep(hf_groups *groups, hf_sweep *sweep, uint64_t identity)
{
    sweep->family = (hf_family){.job = hf_mark_of_job(identity)};
    start_sweep(groups, sweep);
}

/* A program that goes on for longer, with a lease that was renewed after all, has ended
 * for another reason. */
static bool was_told(hf_group *group)
{
    hf_groups *owner = group->owner;
    const uint32_t grace_ms = owner->opts.kill_grace_ms;
    const uint64_t ms = grace_ms > OBEYS_MS ? grace_ms : OBEYS_MS;
    return hf_minder_asked(owner->minder, &group->minded) &&
           hf_boot_ns() - group->minded.asked_ns < ms * HF_MS_NS;
}

static void on_leader_ended(hf_group *group)
{
    group->over = true;
    group->told = was_told(group);
    uv_poll_stop(&group->watch);
    uv_timer_stop(&group->timer);
    hf_group_signal(group, SIGKILL);
    if (group->calls->ended(group) && !hf_family_is_empty(&group->family)) {
        group->sweep.family = group->family;
        group->sweep.cb = on_family_gone;
        start_sweep(group->owner, &group->sweep);
    } else {
        reap(group);
    }
}

static bool has_ended(hf_group *group)
{
    struct pollfd end = {.fd = group->pidfd, .events = POLLIN};
    return group->joined
               ? poll(&end, 1, 0) > 0
               : hf_spawn_has_ended(group->pidfd, &group->by_signal, &group->status);
}

bool hf_group_check(hf_group *group)
{
    if (!group->over && group->pid != 0 && has_ended(group))
        on_leader_ended(group);
    return group->over;
}

static void on_let_go(uv_timer_t *timer)
{
    hf_group *group = timer->data;
    if (!group->over)
        on_leader_ended(group);
}

void hf_group_let_go(hf_group *group)
{
    if (group->pid != 0 && !group->over)
        uv_timer_start(&group->timer, on_let_go, 0, 0);
}

static void on_watch(uv_poll_t *poll, int status, int events)
{
    (void)status, (void)events;
    hf_group_check(poll->data);
}

/* ---- its start ---- */

static hf_err make_cgroup(hf_group *group, hf_spawn *how)
{
    const hf_cgroup cgroup = {hf_mark_common(how->mark), how->job};
    how->cgroup_fd = hf_cgroup_make(&cgroup);
    if (how->cgroup_fd < 0)
        return HF_SYSTEM;
    group->cgroup = cgroup;
    return HF_OK;
}

static hf_err spawn(hf_group *group, const hf_group_start_opts *opts,
                    uint64_t deadline_ns)
{
    hf_groups *owner = group->owner;
    char path[PATH_MAX];
    hf_spawned spawned;
    int minder_fd = hf_minder_fd(owner->minder);
    if (minder_fd < 0)
        return HF_BUSY; /* it went this very moment */
    hf_spawn_find(opts->argv[0], path);
    hf_spawn how = {.cgroup_fd = -1,
                    .path = path,
                    .argv = (char *const *)(uintptr_t)opts->argv, /* only read */
                    .envp = opts->envp,
                    .cwd = opts->cwd,
                    .minder_fd = minder_fd,
                    .deadline_ns = deadline_ns,
                    .mark = hf_mark_new(),
                    .job = hf_mark_of_job(opts->identity),
                    .ends_with_us = true};
    for (size_t i = 0; i < HF_COUNT(how.fds); i++)
        how.fds[i] = opts->fds[i];
    hf_err err = HF_OK;
    if (owner->opts.cgroup && how.mark != 0)
        err = make_cgroup(group, &how);
    if (err == HF_OK)
        err = hf_spawn_start(&how, &spawned);
    int error = errno;
    hf_spawn_close_fd(&how.cgroup_fd);
    if (err != HF_OK)
        hf_cgroups_leave(&owner->cgroups, &group->cgroup);
    errno = error;
    if (err != HF_OK)
        return err;
    group->pid = spawned.pid;
    group->pidfd = spawned.pidfd;
    group->fault = spawned.fault;
    return HF_OK;
}

void hf_group_init(hf_group *group, hf_groups *groups, const hf_group_calls *calls)
{
    memset(group, 0, sizeof *group);
    group->owner = groups;
    group->calls = calls;
    group->pidfd = -1;
}

/* False with errno. */
static bool watch(hf_group *group)
{
    hf_groups *groups = group->owner;
    int failed = uv_poll_init(groups->loop, &group->watch, group->pidfd);
    if (failed != 0) {
        errno = -failed;
        return false;
    }
    uv_timer_init(groups->loop, &group->timer);
    group->timer.data = group->watch.data = group;
    group->handles = 2;
    group->next = groups->running;
    if (group->next != NULL)
        group->next->prev = group;
    groups->running = group;
    uv_poll_start(&group->watch, UV_READABLE, on_watch);
    return true;
}

hf_err hf_group_start(hf_group *group, const hf_group_start_opts *how)
{
    hf_groups *groups = group->owner;
    uint64_t wanted_ns = atomic_load(&group->minded.wanted_ns); /* hf_group_extend() */
    uint64_t deadline_ns = wanted_ns > how->deadline_ns ? wanted_ns : how->deadline_ns;
    if (groups->closing || !hf_groups_ready(groups))
        return HF_BUSY;
    hf_err err = spawn(group, how, deadline_ns);
    if (err != HF_OK)
        return err;
    if (!watch(group)) {
        int error = errno;
        hf_spawn_undo(group->pid, hf_minder_fd(groups->minder));
        hf_cgroups_leave(&groups->cgroups, &group->cgroup);
        hf_spawn_close_fd(&group->pidfd);
        group->pid = 0;
        errno = error;
        return HF_SYSTEM;
    }
    group->family = hf_family_of(group->pid);
    hf_minder_add(groups->minder, &group->minded, group->pid, deadline_ns);
    return HF_OK;
}

hf_err hf_group_join(hf_group *group, pid_t pid, int pidfd)
{
    group->pid = pid;
    group->pidfd = pidfd;
    group->joined = true;
    if (!group->owner->closing && watch(group))
        return HF_OK;
    int error = errno;
    hf_spawn_close_fd(&group->pidfd);
    group->pid = 0;
    errno = error;
    return HF_SYSTEM;
}

/* ---- all of them ---- */

static void on_minder(bool ready, void *arg)
{
    hf_groups *groups = arg;
    if (groups->opts.on_ready != NULL && !groups->closing)
        groups->opts.on_ready(ready, groups->opts.arg);
}

hf_err hf_groups_new(hf_groups **out, uv_loop_t *loop, const hf_groups_opts *opts,
                     char detail[HF_DETAIL_SIZE])
{
    hf_groups *groups = calloc(1, sizeof *groups);
    if (groups == NULL)
        return HF_NOMEM;
    groups->loop = loop;
    groups->opts = *opts;
    groups->opts.minder_path = NULL; /* not ours to keep */
    hf_minder_opts minder = {.loop = loop,
                             .path = opts->minder_path,
                             .kill_grace_ms = opts->kill_grace_ms,
                             .on_ready = on_minder,
                             .arg = groups};
    hf_err err = opts->cgroup ? hf_cgroup_check(detail) : HF_OK;
    if (err == HF_OK)
        err = hf_sweeper_new(&groups->sweeper, loop);
    if (err == HF_OK)
        err = hf_minder_start(&groups->minder, &minder, detail);
    if (err != HF_OK) {
        if (groups->sweeper != NULL)
            hf_sweeper_close(groups->sweeper, free, groups);
        else
            free(groups);
        return err;
    }
    *out = groups;
    return HF_OK;
}

bool hf_groups_ready(const hf_groups *groups)
{
    return hf_minder_ready(groups->minder);
}

pid_t hf_groups_minder_pid(const hf_groups *groups)
{
    return hf_minder_pid(groups->minder);
}

bool hf_groups_closing(const hf_groups *groups)
{
    return groups->closing;
}

static void on_sweeper_closed(void *arg)
{
    hf_groups *groups = arg;
    groups->closed = true;
    settle(groups);
}

static void on_minder_closed(void *arg)
{
    hf_groups *groups = arg;
    hf_sweeper_close(groups->sweeper, on_sweeper_closed, groups);
}

static void settle(hf_groups *groups)
{
    if (groups->closed && groups->not_done == 0) {
        hf_minder_free(groups->minder);
        free(groups);
    } else if (groups->closing && groups->running == NULL && groups->users == 0 &&
               !groups->minder_closing) {
        groups->minder_closing = true;
        hf_minder_close(groups->minder, on_minder_closed, groups);
    }
}

void hf_groups_enter(hf_groups *groups)
{
    groups->users++;
    groups->not_done++;
}

void hf_groups_leave(hf_groups *groups)
{
    groups->users--;
    settle(groups);
}

void hf_groups_done(hf_groups *groups)
{
    groups->not_done--;
    settle(groups);
}

void hf_groups_close(hf_groups *groups)
{
    if (groups == NULL)
        return;
    HF_ASSERT(!groups->closing);
    groups->closing = true;
    settle(groups);
}
