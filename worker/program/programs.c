/* programs.c - worker/program/programs.h: the programs of one worker, and each of them
 * from its start to its end, with its pipes: its payload, its outputs, its descriptor;
 * and one with a checkpoint, which has everything that it will ever hold when the program
 * starts.
 *
 * The start of a job that may have run before: what is left of that run on this machine
 * is killed, and has gone -> the program is started.
 *
 * The end, in this order: the leader has ended (pidfd) but is not reaped, so its number
 * is still its own -> KILL to what is left of the group -> what is in its pipes is read:
 * all that the leader wrote. A process that left the group may hold them open -> unless
 * the job is done, KILL to all that the program has started, and they have gone -> the
 * minder forgets the group -> the leader is reaped -> all handles are closed -> done_cb.
 */
#include "worker/program/programs.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

#include "base/base.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/fdlock.h"
#include "lock/minder/cgroup.h"
#include "lock/minder/family.h"
#include "lock/minder/mark.h"
#include "lock/minder/minder.h"
#include "lock/minder/spawn.h"
#include "lock/minder/sweeper.h"
#include "worker/program/env.h"
#include "worker/program/output.h"
#include "worker/program/pipes.h"
#include "worker/program/said.h"
#include "worker/program/verdict.h"

#ifndef P_PIDFD
#define P_PIDFD 3
#endif

enum {
    READ_SIZE = 64 << 10,
    DRAIN_READS = 16, /* reads of one pipe at the end: as much as a pipe can hold */
    GRACE_MS = 5000,  /* where the program's specification names none */
    CLOSING_MS = 1000 /* for the end of a family, when all programs are to end */
};

#define LEFT "a process of an earlier run of this job is still there"

typedef struct process_pipe {
    hf_process *process;
    uv_poll_t poll;
    bool polled; /* it has its handle */
    int fd;      /* our end; -1: closed */
} process_pipe;

struct hf_process {
    hf_programs *owner;
    hf_process *prev, *next; /* in owner->running */
    const hf_program *spec;  /* borrowed */
    hf_program_done_cb done_cb;
    void *arg;
    const char *payload; /* borrowed: the bytes that are not written yet */
    size_t payload_left;
    uint32_t timeout_ms;

    pid_t pid; /* and its group; 0: not started, or reaped */
    int pidfd;
    hf_spawn_fault fault; /* why it was not executed */
    hf_minded minded;
    hf_family family; /* all that it has started */
    hf_cgroup cgroup; /* mark 0: none, or it is removed */
    hf_sweep sweep;   /* of what ran before it, then of its family */
    hf_far_ends far;  /* until it is started */
    hf_program_job job;
    process_pipe pipes[HF_PIPES];
    uv_poll_t watch;  /* on pidfd */
    uv_timer_t timer; /* for the earlier of these two, CLOCK_BOOTTIME; 0: none */
    uint64_t timeout_ns, kill_ns;
    int handles; /* that are not closed yet */
    bool has_timer, watched, abandoned, reaped, closing, done;
    bool over; /* its leader has ended */
    bool timed_out, ended, by_signal;
    bool denied; /* it was told that a signal was not allowed */
    int status;
    hf_program_output output;
    hf_program_said said; /* what came on descriptor 3 */
};

struct hf_programs {
    uv_loop_t *loop;
    hf_programs_opts opts;
    hf_minder *minder;   /* owned; it stays until the last process was freed */
    hf_sweeper *sweeper; /* owned */
    hf_process *running;
    size_t n_processes; /* not freed */
    hf_cgroups cgroups; /* that were left */
    bool closing, minder_closing, closed;
    void (*closed_cb)(void *arg);
    void *closed_arg;
    char bytes[READ_SIZE]; /* for one read at a time */
};

static void on_closed(uv_handle_t *handle); /* whose data is the process */
static void close_process(hf_process *p);   /* all its handles; then it is done */
static void settle(hf_programs *programs);  /* a process has ended, or was freed */

/* ---- its pipes ---- */

static void close_pipe(process_pipe *pipe)
{
    if (pipe->fd < 0)
        return;
    if (pipe->polled) {
        pipe->poll.data = pipe->process;
        uv_close((uv_handle_t *)&pipe->poll, on_closed);
    }
    pipe->polled = false;
    hf_spawn_close_fd(&pipe->fd);
}

/* A program that closes its stdin early, or never reads it, is free to do so. */
static void write_payload(hf_process *p)
{
    process_pipe *pipe = &p->pipes[HF_PIPE_IN];
    if (hf_write_some(pipe->fd, &p->payload, &p->payload_left))
        close_pipe(pipe);
}

static void on_writable(uv_poll_t *poll, int status, int events)
{
    (void)events;
    process_pipe *pipe = poll->data;
    if (status < 0)
        close_pipe(pipe);
    else
        write_payload(pipe->process);
}

static void take(hf_process *p, int which, const char *bytes, size_t len)
{
    const hf_programs_opts *opts = &p->owner->opts;
    if (which == HF_PIPE_VERDICT) {
        hf_program_said_feed(&p->said, bytes, len);
        return;
    }
    if (which == HF_PIPE_OUT && p->spec->result_stdout) {
        hf_program_said_output(&p->said, bytes, len);
        return;
    }
    hf_program_output_feed(&p->output, which, bytes, len);
    if (opts->on_output != NULL)
        opts->on_output(p->arg, bytes, len, opts->arg);
}

/* One read. False: there is nothing to read now, or ever. */
static bool read_pipe(process_pipe *pipe)
{
    hf_process *p = pipe->process;
    char *bytes = p->owner->bytes;
    ssize_t n = read(pipe->fd, bytes, READ_SIZE);
    if (n > 0) {
        take(p, (int)(pipe - p->pipes), bytes, (size_t)n);
        return true;
    }
    if (n < 0 && errno == EINTR)
        return true;
    if (n == 0 || errno != EAGAIN)
        close_pipe(pipe);
    return false;
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    (void)status, (void)events; /* the read says more */
    process_pipe *pipe = poll->data;
    read_pipe(pipe);
}

static bool poll_pipe(hf_process *p, int which)
{
    process_pipe *pipe = &p->pipes[which];
    int failed = uv_poll_init(p->owner->loop, &pipe->poll, pipe->fd);
    if (failed != 0) {
        errno = -failed;
        return false;
    }
    pipe->poll.data = pipe;
    pipe->polled = true;
    p->handles++;
    return true;
}

static hf_err poll_pipes(hf_process *p)
{
    for (int i = HF_PIPE_OUT; i <= HF_PIPE_VERDICT; i++)
        if (!poll_pipe(p, i))
            return HF_SYSTEM;
    /* A payload that fits into the pipe at once needs no handle, and nearly all do. */
    write_payload(p);
    if (p->pipes[HF_PIPE_IN].fd >= 0 && !poll_pipe(p, HF_PIPE_IN))
        return HF_SYSTEM;
    return HF_OK;
}

static void start_pipes(hf_process *p)
{
    for (int i = HF_PIPE_OUT; i <= HF_PIPE_VERDICT; i++)
        uv_poll_start(&p->pipes[i].poll, UV_READABLE, on_readable);
    if (p->pipes[HF_PIPE_IN].fd >= 0)
        uv_poll_start(&p->pipes[HF_PIPE_IN].poll, UV_WRITABLE, on_writable);
}

static void drain(hf_process *p)
{
    close_pipe(&p->pipes[HF_PIPE_IN]);
    for (int i = HF_PIPE_OUT; i <= HF_PIPE_VERDICT; i++)
        for (int n = 0; n < DRAIN_READS && p->pipes[i].fd >= 0; n++)
            if (!read_pipe(&p->pipes[i]))
                break;
    for (int i = HF_PIPE_OUT; i <= HF_PIPE_VERDICT; i++)
        close_pipe(&p->pipes[i]);
}

/* ---- its end ---- */

static void judge(hf_process *p, hf_program_result *result,
                  char text[HF_PROGRAM_ERROR_MAX + 1])
{
    char stderr_end[HF_PROGRAM_ERROR_MAX + 1];
    hf_spawn_fault fault = p->fault;
    *result = (hf_program_result){.verdict = HF_VERDICT_RETRY,
                                  .error = text,
                                  .started = fault.step == HF_SPAWN_NONE,
                                  .withheld = fault.step == HF_SPAWN_MINDER ||
                                              fault.step == HF_SPAWN_LATE,
                                  .by_signal = p->by_signal,
                                  .timed_out = p->timed_out,
                                  .ended = p->ended,
                                  .asked = p->minded.asked,
                                  .status = p->status};
    if (fault.step != HF_SPAWN_NONE) {
        hf_program_verdict_not_started(p->spec, &fault, text);
        return;
    }
    hf_program_output_error(&p->output, stderr_end);
    hf_program_end_state end = {.by_signal = p->by_signal,
                                .timed_out = p->timed_out,
                                .status = p->status,
                                .timeout_ms = p->timeout_ms,
                                .stderr_end = stderr_end};
    hf_program_verdict_decide(result, &end, &p->said.verdict, text);
    result->result = p->said.result;
    result->result_len = p->said.result_len;
    result->result_is_json = p->said.result_is_json;
}

static void leave_running(hf_process *p)
{
    if (p->prev != NULL)
        p->prev->next = p->next;
    else
        p->owner->running = p->next;
    if (p->next != NULL)
        p->next->prev = p->prev;
}

static void free_process(hf_process *p)
{
    hf_programs *owner = p->owner;
    hf_program_said_done(&p->said);
    free(p);
    owner->n_processes--;
    settle(owner);
}

/* All its handles are closed: nothing of libuv knows it any more. */
static void finish(hf_process *p)
{
    hf_programs *owner = p->owner;
    hf_program_result result;
    char text[HF_PROGRAM_ERROR_MAX + 1];
    if (p->abandoned) {
        hf_spawn_close_fd(&p->pidfd);
        free_process(p);
        return;
    }
    judge(p, &result, text);
    hf_spawn_close_fd(&p->pidfd);
    leave_running(p);
    p->done = true;
    p->done_cb(&result, p->arg); /* may free it */
    settle(owner);
}

static void on_closed(uv_handle_t *handle)
{
    hf_process *p = handle->data;
    if (--p->handles == 0)
        finish(p);
}

static void close_process(hf_process *p)
{
    if (p->closing)
        return;
    p->closing = true;
    for (int i = 0; i < HF_PIPES; i++)
        close_pipe(&p->pipes[i]);
    if (p->has_timer)
        uv_close((uv_handle_t *)&p->timer, on_closed);
    if (p->watched)
        uv_close((uv_handle_t *)&p->watch, on_closed);
}

static void abandon(hf_process *p)
{
    p->abandoned = true;
    close_process(p);
    if (p->handles == 0)
        finish(p);
}

/* ---- its time ---- */

static void on_timer(uv_timer_t *timer);

static void schedule(hf_process *p)
{
    const uint64_t times[] = {p->timeout_ns, p->kill_ns};
    uint64_t at_ns = UINT64_MAX, now_ns = hf_boot_ns();
    for (size_t i = 0; i < HF_COUNT(times); i++)
        if (times[i] != 0 && times[i] < at_ns)
            at_ns = times[i];
    uv_timer_stop(&p->timer);
    if (at_ns == UINT64_MAX)
        return;
    uint64_t wait_ms = at_ns <= now_ns ? 0 : (at_ns - now_ns) / HF_MS_NS + 1;
    uv_update_time(p->owner->loop);
    uv_timer_start(&p->timer, on_timer, wait_ms, 0);
}

/* A process that became another user (sudo) outlives its lease, if it is in no cgroup. */
static void tell_denied(hf_process *p)
{
    const hf_programs_opts *opts = &p->owner->opts;
    if (!p->denied && opts->on_denied != NULL)
        opts->on_denied(p->arg, opts->arg);
    p->denied = true;
}

static void send_signal(hf_process *p, int sig)
{
    if (!hf_spawn_signal_child(p->pid, p->pidfd, sig) && errno == EPERM &&
        p->cgroup.mark == 0)
        tell_denied(p);
}

static void ask_to_end(hf_process *p, uint32_t grace_ms)
{
    uint64_t kill_ns = hf_boot_ns() + grace_ms * HF_MS_NS;
    if (grace_ms == 0) {
        send_signal(p, SIGKILL);
        p->kill_ns = 0;
        return;
    }
    if (p->kill_ns == 0) {
        send_signal(p, SIGTERM);
        hf_sweeper_ask(p->owner->sweeper, &p->family);
    }
    if (p->kill_ns == 0 || kill_ns < p->kill_ns)
        p->kill_ns = kill_ns;
}

static void reap(hf_process *p)
{
    hf_minder_remove(p->owner->minder, &p->minded);
    siginfo_t info;
    while (waitid(P_PIDFD, (id_t)p->pidfd, &info, WEXITED) < 0 && errno == EINTR)
        continue;
    hf_cgroups_leave(&p->owner->cgroups, &p->cgroup);
    if (hf_spawn_left_denied(p->pid, p->pidfd))
        tell_denied(p);
    p->pid = 0;
    p->reaped = true;
    close_process(p);
}

static void on_family_gone(hf_sweep *sweep)
{
    hf_process *p = HF_CONTAINER(sweep, hf_process, sweep);
    if (sweep->family.denied)
        tell_denied(p);
    reap(p);
}

static void sweep(hf_process *p, const hf_family *family, void (*cb)(hf_sweep *))
{
    uint64_t ms = p->owner->closing ? CLOSING_MS : HF_FAMILY_KILL_MS;
    p->sweep.family = *family;
    p->sweep.cb = cb;
    atomic_store(&p->sweep.until_ns, hf_boot_ns() + ms * HF_MS_NS);
    hf_sweeper_kill(p->owner->sweeper, &p->sweep);
}

/* Nothing of it may run beside the next run of its job. A job that is done has no other,
 * and may leave a daemon that left the group. */
static bool may_run_again(const hf_process *p)
{
    const hf_verdict_line *line = &p->said.verdict;
    if (p->by_signal || p->timed_out || p->ended)
        return true;
    return line->has_verdict ? line->verdict != HF_VERDICT_DONE : p->status != 0;
}

static void on_leader_ended(hf_process *p)
{
    p->over = true;
    p->timeout_ns = p->kill_ns = 0;
    uv_poll_stop(&p->watch);
    uv_timer_stop(&p->timer);
    send_signal(p, SIGKILL);
    drain(p);
    hf_program_output_end(&p->output);
    hf_program_said_end(&p->said);
    if (may_run_again(p) && !hf_family_is_empty(&p->family))
        sweep(p, &p->family, on_family_gone);
    else
        reap(p);
}

static void on_watch(uv_poll_t *poll, int status, int events)
{
    (void)status, (void)events;
    hf_process *p = poll->data;
    if (!p->over && hf_spawn_has_ended(p->pidfd, &p->by_signal, &p->status))
        on_leader_ended(p);
}

static bool is_due(uint64_t at_ns, uint64_t now_ns)
{
    return at_ns != 0 && now_ns >= at_ns;
}

static void on_timer(uv_timer_t *timer)
{
    hf_process *p = timer->data;
    uint64_t now_ns = hf_boot_ns();
    /* A program that ended in time has not timed out because this loop was slow. */
    if (p->over)
        return;
    if (hf_spawn_has_ended(p->pidfd, &p->by_signal, &p->status)) {
        on_leader_ended(p);
        return;
    }
    if (is_due(p->kill_ns, now_ns)) {
        send_signal(p, SIGKILL);
        p->kill_ns = 0;
    }
    if (is_due(p->timeout_ns, now_ns)) {
        p->timeout_ns = 0;
        p->timed_out = true;
        ask_to_end(p, p->spec->grace_ms == 0 ? GRACE_MS : p->spec->grace_ms);
    }
    schedule(p);
}

/* ---- its start ---- */

static void on_line(int stream, const char *text, size_t len, void *arg)
{
    const hf_process *p = arg;
    const hf_programs_opts *opts = &p->owner->opts;
    if (opts->on_line != NULL)
        opts->on_line(p->arg, stream, text, len, opts->arg);
}

static void on_news(const hf_program_news *news, void *arg)
{
    const hf_process *p = arg;
    const hf_programs_opts *opts = &p->owner->opts;
    if (opts->on_news != NULL)
        opts->on_news(p->arg, news, opts->arg);
}

static void on_fault(const char *text, void *arg)
{
    on_line(0, text, strlen(text), arg);
}

static hf_process *new_process(hf_programs *programs, const hf_program *spec,
                               const hf_program_job *job, hf_program_done_cb done_cb,
                               void *arg)
{
    hf_process *p = malloc(sizeof *p);
    if (p == NULL)
        return NULL;
    memset(p, 0, offsetof(hf_process, output)); /* the output needs no zeros */
    p->owner = programs;
    p->spec = spec;
    p->done_cb = done_cb;
    p->arg = arg;
    p->payload = job->payload;
    p->payload_left = job->payload_len;
    p->timeout_ms = job->timeout_ms;
    p->pidfd = -1;
    for (int i = 0; i < HF_PIPES; i++)
        p->pipes[i] = (process_pipe){.process = p, .fd = -1};
    hf_program_output_init(&p->output, on_line, p);
    hf_program_said_init(&p->said, on_news, on_fault, p);
    programs->n_processes++;
    return p;
}

static hf_err prepare(hf_process *p)
{
    uv_timer_init(p->owner->loop, &p->timer);
    p->timer.data = p;
    p->has_timer = true;
    p->handles++;
    return poll_pipes(p);
}

static hf_err run_process(hf_process *p, const hf_program_job *job)
{
    hf_programs *owner = p->owner;
    int failed = uv_poll_init(owner->loop, &p->watch, p->pidfd);
    if (failed != 0) {
        hf_spawn_undo(p->pid, hf_minder_fd(owner->minder));
        hf_cgroups_leave(&p->owner->cgroups, &p->cgroup);
        errno = -failed;
        return HF_SYSTEM;
    }
    p->watch.data = p;
    p->watched = true;
    p->handles++;
    p->family = hf_family_of(p->pid);
    hf_minder_add(owner->minder, &p->minded, p->pid, job->deadline_ns);
    uv_poll_start(&p->watch, UV_READABLE, on_watch);
    start_pipes(p);
    if (p->timeout_ms > 0)
        p->timeout_ns = hf_boot_ns() + p->timeout_ms * HF_MS_NS;
    schedule(p);
    return HF_OK;
}

static void enter_running(hf_process *p)
{
    p->next = p->owner->running;
    if (p->next != NULL)
        p->next->prev = p;
    p->owner->running = p;
}

static bool open_pipes(hf_process *p, const hf_program_job *job)
{
    int ours[HF_PIPES];
    bool opened = hf_program_pipes_open(&p->far, ours, job);
    for (int i = 0; i < HF_PIPES; i++)
        p->pipes[i].fd = ours[i];
    return opened;
}

static hf_err make_cgroup(hf_process *p, hf_spawn *how)
{
    const hf_cgroup group = {hf_mark_common(how->mark), how->job};
    how->cgroup_fd = hf_cgroup_make(&group);
    if (how->cgroup_fd < 0)
        return HF_SYSTEM;
    p->cgroup = group;
    return HF_OK;
}

static hf_err spawn(hf_process *p, const hf_far_ends *far, const hf_program_job *job)
{
    hf_program_env env;
    char path[PATH_MAX];
    hf_spawned spawned;
    int minder_fd = hf_minder_fd(p->owner->minder);
    if (minder_fd < 0)
        return HF_BUSY; /* it went this very moment */
    hf_err err = hf_program_env_init(&env, p->spec, job);
    if (err == HF_OK) {
        hf_spawn_find(p->spec->argv[0], path);
        hf_spawn how = {.cgroup_fd = -1,
                        .path = path,
                        .argv = (char *const *)(uintptr_t)p->spec->argv, /* only read */
                        .envp = env.vars,
                        .cwd = p->spec->cwd,
                        .minder_fd = minder_fd,
                        .deadline_ns = job->deadline_ns,
                        .mark = hf_mark_new(),
                        .job = hf_mark_of_job(job->identity),
                        .ends_with_us = true};
        for (size_t i = 0; i < HF_COUNT(how.fds); i++)
            how.fds[i] = far->fds[i];
        if (p->owner->opts.cgroup && how.mark != 0)
            err = make_cgroup(p, &how);
        if (err == HF_OK)
            err = hf_spawn_start(&how, &spawned);
        int error = errno;
        hf_spawn_close_fd(&how.cgroup_fd);
        errno = error;
    }
    int error = errno;
    hf_program_env_done(&env);
    if (err != HF_OK)
        hf_cgroups_leave(&p->owner->cgroups, &p->cgroup);
    errno = error;
    if (err != HF_OK)
        return err;
    p->pid = spawned.pid;
    p->pidfd = spawned.pidfd;
    p->fault = spawned.fault;
    return HF_OK;
}

/* What ran before it has gone, or had its time. */
static void on_place_free(hf_sweep *sweep)
{
    hf_process *p = HF_CONTAINER(sweep, hf_process, sweep);
    uint64_t wanted_ns = atomic_load(&p->minded.wanted_ns); /* by hf_program_extend() */
    if (wanted_ns > p->job.deadline_ns)
        p->job.deadline_ns = wanted_ns;
    if (sweep->left && !p->ended)
        on_line(0, LEFT, strlen(LEFT), p);
    hf_err err = p->ended ? HF_CANCEL : spawn(p, &p->far, &p->job);
    if (err == HF_OK)
        err = run_process(p, &p->job);
    int error = errno;
    hf_program_pipes_close(&p->far);
    if (err == HF_OK)
        return;
    p->fault = (hf_spawn_fault){err == HF_CANCEL ? HF_SPAWN_LATE : HF_SPAWN_MINDER,
                                err == HF_BUSY ? EPIPE : error};
    p->over = p->reaped = true;
    close_process(p);
}

hf_err hf_programs_start(hf_programs *programs, const hf_program *spec,
                         const hf_program_job *job, hf_program_done_cb done_cb, void *arg,
                         hf_process **out)
{
    HF_ASSERT(done_cb != NULL && !programs->closing);
    if (!hf_programs_ready(programs))
        return HF_BUSY;
    hf_process *p = new_process(programs, spec, job, done_cb, arg);
    if (p == NULL)
        return HF_NOMEM;
    hf_err err = open_pipes(p, job) ? prepare(p) : HF_SYSTEM;
    if (err == HF_OK && job->ran_before) {
        enter_running(p);
        p->job = *job;
        sweep(p, &(hf_family){.job = hf_mark_of_job(job->identity)}, on_place_free);
        *out = p;
        return HF_OK;
    }
    if (err == HF_OK)
        err = spawn(p, &p->far, job);
    if (err == HF_OK)
        err = run_process(p, job);
    int error = errno;
    hf_program_pipes_close(&p->far);
    if (err != HF_OK) {
        abandon(p);
    } else {
        enter_running(p);
        *out = p;
    }
    errno = error;
    return err;
}

/* ---- the interface ---- */

void hf_program_extend(hf_process *p, uint64_t deadline_ns)
{
    hf_minder_extend(p->owner->minder, &p->minded, deadline_ns);
}

void hf_program_end(hf_process *p, uint32_t grace_ms)
{
    if (p->done || p->over)
        return;
    p->ended = true;
    if (p->pid == 0) { /* it waits for what ran before it */
        atomic_store(&p->sweep.until_ns, 1);
        return;
    }
    ask_to_end(p, grace_ms);
    schedule(p);
}

void hf_program_free(hf_process *p)
{
    if (p == NULL)
        return;
    HF_ASSERT(p->done);
    free_process(p);
}

/* ---- all of them ---- */

static void on_minder(bool ready, void *arg)
{
    hf_programs *programs = arg;
    if (programs->opts.on_ready != NULL && !programs->closing)
        programs->opts.on_ready(ready, programs->opts.arg);
}

hf_err hf_programs_new(hf_programs **out, struct uv_loop_s *loop,
                       const hf_programs_opts *opts, char detail[HF_DETAIL_SIZE])
{
    hf_programs *programs = calloc(1, sizeof *programs);
    if (programs == NULL)
        return HF_NOMEM;
    programs->loop = loop;
    programs->opts = *opts;
    programs->opts.minder_path = NULL; /* not ours to keep */
    hf_minder_opts minder = {.loop = loop,
                             .path = opts->minder_path,
                             .kill_grace_ms = opts->kill_grace_ms,
                             .on_ready = on_minder,
                             .arg = programs};
    hf_err err = opts->cgroup ? hf_cgroup_check(detail) : HF_OK;
    if (err == HF_OK)
        err = hf_sweeper_new(&programs->sweeper, loop);
    if (err == HF_OK)
        err = hf_minder_start(&programs->minder, &minder, detail);
    if (err != HF_OK) {
        if (programs->sweeper != NULL)
            hf_sweeper_close(programs->sweeper, free, programs);
        else
            free(programs);
        return err;
    }
    *out = programs;
    return HF_OK;
}

bool hf_programs_ready(const hf_programs *programs)
{
    return hf_minder_ready(programs->minder);
}

pid_t hf_programs_minder_pid(const hf_programs *programs)
{
    return hf_minder_pid(programs->minder);
}

static void on_sweeper_closed(void *arg)
{
    hf_programs *programs = arg;
    void (*cb)(void *) = programs->closed_cb;
    void *cb_arg = programs->closed_arg;
    programs->closed = true;
    settle(programs);
    if (cb != NULL)
        cb(cb_arg);
}

static void on_minder_closed(void *arg)
{
    hf_programs *programs = arg;
    hf_sweeper_close(programs->sweeper, on_sweeper_closed, programs);
}

static void settle(hf_programs *programs)
{
    if (programs->closed && programs->n_processes == 0) {
        hf_minder_free(programs->minder);
        free(programs);
    } else if (programs->closing && programs->running == NULL &&
               !programs->minder_closing) {
        programs->minder_closing = true;
        hf_minder_close(programs->minder, on_minder_closed, programs);
    }
}

void hf_programs_close(hf_programs *programs, void (*cb)(void *arg), void *arg)
{
    if (programs == NULL)
        return;
    HF_ASSERT(!programs->closing);
    programs->closing = true;
    programs->closed_cb = cb;
    programs->closed_arg = arg;
    for (hf_process *p = programs->running; p != NULL; p = p->next)
        hf_program_end(p, 0);
    settle(programs);
}
