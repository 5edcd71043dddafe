/* programs.c - worker/program/programs.h: the programs of one worker, and each of them
 * from its start to its end, with its pipes: its payload, its outputs, its descriptor;
 * and one with a checkpoint, which has everything that it will ever hold when the program
 * starts.
 *
 * The start of a job that may have run before: what is left of that run on this machine
 * is killed, and has gone -> the program is started.
 *
 * The end, in this order: the leader has ended -> what is in its pipes is read: all that
 * the leader wrote. A process that left the group may hold them open -> unless the job is
 * done, all that the program has started ends -> the group is gone -> all handles are
 * closed -> done_cb.
 */
#include "worker/program/programs.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "base/base.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/fdlock.h"
#include "lock/minder/spawn.h"
#include "lock/minder/sweeper.h"
#include "worker/group/groups.h"
#include "worker/program/env.h"
#include "worker/program/output.h"
#include "worker/program/pipes.h"
#include "worker/program/said.h"
#include "worker/program/verdict.h"

enum {
    READ_SIZE = 64 << 10,
    DRAIN_READS = 16, /* reads of one pipe at the end: as much as a pipe can hold */
    GRACE_MS = 5000,  /* where the program's specification names none */
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

    hf_group group;
    hf_sweep sweep;  /* of what ran before it */
    hf_far_ends far; /* until it is started */
    hf_program_job job;
    process_pipe pipes[HF_PIPES];
    uv_timer_t timer;    /* for its time-out */
    uint64_t timeout_ns; /* CLOCK_BOOTTIME; 0: none */
    int handles;         /* that are not closed yet */
    bool has_timer, abandoned, closing, done;
    bool timed_out, ended, never_started;
    hf_program_output output;
    hf_program_said said; /* what came on descriptor 3 */
};

struct hf_programs {
    uv_loop_t *loop;
    hf_programs_opts opts;
    hf_groups *groups; /* borrowed, and done with when the last process was freed */
    hf_process *running;
    size_t n_processes; /* not freed */
    bool closing, closed;
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
    const hf_group *group = &p->group;
    hf_spawn_fault fault = group->fault;
    *result = (hf_program_result){.verdict = HF_VERDICT_RETRY,
                                  .error = text,
                                  .started = fault.step == HF_SPAWN_NONE,
                                  .withheld = fault.step == HF_SPAWN_MINDER ||
                                              fault.step == HF_SPAWN_LATE,
                                  .by_signal = group->by_signal,
                                  .timed_out = p->timed_out,
                                  .ended = p->ended,
                                  .asked = group->told,
                                  .status = group->status};
    if (fault.step != HF_SPAWN_NONE) {
        hf_program_verdict_not_started(p->spec, &fault, text);
        return;
    }
    hf_program_output_error(&p->output, stderr_end);
    hf_program_end_state end = {.by_signal = group->by_signal,
                                .timed_out = p->timed_out,
                                .status = group->status,
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
        free_process(p);
        return;
    }
    judge(p, &result, text);
    leave_running(p);
    p->done = true;
    owner->n_processes++; /* it stays, whatever done_cb frees */
    p->done_cb(&result, p->arg);
    owner->n_processes--;
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
}

static void abandon(hf_process *p)
{
    p->abandoned = true;
    close_process(p);
    if (p->handles == 0)
        finish(p);
}

/* Nothing of it may run beside the next run of its job. A job that is done has no other,
 * and may leave a daemon that left the group. */
static bool may_run_again(const hf_process *p)
{
    const hf_verdict_line *line = &p->said.verdict;
    if (p->group.by_signal || p->timed_out || p->ended)
        return true;
    return line->has_verdict ? line->verdict != HF_VERDICT_DONE : p->group.status != 0;
}

static bool on_ended(hf_group *group)
{
    hf_process *p = HF_CONTAINER(group, hf_process, group);
    p->timeout_ns = 0;
    uv_timer_stop(&p->timer);
    drain(p);
    hf_program_output_end(&p->output);
    hf_program_said_end(&p->said);
    return may_run_again(p);
}

static void on_denied(hf_group *group)
{
    const hf_process *p = HF_CONTAINER(group, hf_process, group);
    const hf_programs_opts *opts = &p->owner->opts;
    if (opts->on_denied != NULL)
        opts->on_denied(p->arg, opts->arg);
}

static void on_gone(hf_group *group)
{
    close_process(HF_CONTAINER(group, hf_process, group));
}

static const hf_group_calls calls = {on_ended, on_denied, on_gone};

/* ---- its time ---- */

static void on_timer(uv_timer_t *timer);

static void schedule(hf_process *p)
{
    uint64_t now_ns = hf_boot_ns();
    if (p->timeout_ns == 0)
        return;
    uint64_t wait_ms =
        p->timeout_ns <= now_ns ? 0 : (p->timeout_ns - now_ns) / HF_MS_NS + 1;
    uv_update_time(p->owner->loop);
    uv_timer_start(&p->timer, on_timer, wait_ms, 0);
}

/* A program that ended in time has not timed out because this loop was slow. */
static void on_timer(uv_timer_t *timer)
{
    hf_process *p = timer->data;
    if (hf_group_check(&p->group))
        return;
    if (hf_boot_ns() < p->timeout_ns) {
        schedule(p);
        return;
    }
    p->timeout_ns = 0;
    p->timed_out = true;
    hf_group_end(&p->group, p->spec->grace_ms == 0 ? GRACE_MS : p->spec->grace_ms);
}

/* ---- its start ---- */

static void on_line(int stream, const char *text, size_t len, void *arg)
{
    const hf_process *p = arg;
    const hf_programs_opts *opts = &p->owner->opts;
    if (opts->on_line != NULL)
        opts->on_line(p->arg, stream, text, len, opts->arg);
}

static void on_update(const hf_program_update *update, void *arg)
{
    const hf_process *p = arg;
    const hf_programs_opts *opts = &p->owner->opts;
    if (opts->on_update != NULL)
        opts->on_update(p->arg, update, opts->arg);
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
    hf_group_init(&p->group, programs->groups, &calls);
    for (int i = 0; i < HF_PIPES; i++)
        p->pipes[i] = (process_pipe){.process = p, .fd = -1};
    hf_program_output_init(&p->output, on_line, p);
    hf_program_said_init(&p->said, on_update, on_fault, p);
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

static hf_err start_group(hf_process *p, const hf_program_job *job)
{
    hf_program_env env;
    hf_err err = hf_program_env_init(&env, p->spec, job);
    if (err == HF_OK) {
        hf_group_start_opts how = {.argv = p->spec->argv,
                                   .envp = env.vars,
                                   .cwd = p->spec->cwd,
                                   .deadline_ns = job->deadline_ns,
                                   .identity = job->identity};
        for (size_t i = 0; i < HF_COUNT(how.fds); i++)
            how.fds[i] = p->far.fds[i];
        err = hf_group_start(&p->group, &how);
    }
    int error = errno;
    hf_program_env_done(&env);
    hf_program_pipes_close(&p->far);
    errno = error;
    if (err != HF_OK)
        return err;
    start_pipes(p);
    if (p->timeout_ms > 0)
        p->timeout_ns = hf_boot_ns() + p->timeout_ms * HF_MS_NS;
    schedule(p);
    return HF_OK;
}

/* The processes of earlier runs have gone, or had their time. */
static void on_place_free(hf_sweep *sweep)
{
    hf_process *p = HF_CONTAINER(sweep, hf_process, sweep);
    if (sweep->left && !p->ended)
        on_line(0, LEFT, strlen(LEFT), p);
    hf_err err = p->ended ? HF_CANCEL : start_group(p, &p->job);
    if (err == HF_OK)
        return;
    p->never_started = true;
    p->group.fault = (hf_spawn_fault){err == HF_CANCEL ? HF_SPAWN_LATE : HF_SPAWN_MINDER,
                                      err == HF_BUSY ? EPIPE : errno};
    hf_program_pipes_close(&p->far);
    close_process(p);
}

hf_err hf_programs_start(hf_programs *programs, const hf_program *spec,
                         const hf_program_job *job, hf_program_done_cb done_cb, void *arg,
                         hf_process **out)
{
    HF_ASSERT(done_cb != NULL && !programs->closing);
    if (!hf_groups_ready(programs->groups))
        return HF_BUSY;
    hf_process *p = new_process(programs, spec, job, done_cb, arg);
    if (p == NULL)
        return HF_NOMEM;
    hf_err err = open_pipes(p, job) ? prepare(p) : HF_SYSTEM;
    if (err == HF_OK && job->ran_before) {
        enter_running(p);
        p->job = *job;
        p->sweep.cb = on_place_free;
        hf_groups_sweep(programs->groups, &p->sweep, job->identity);
        *out = p;
        return HF_OK;
    }
    if (err == HF_OK)
        err = start_group(p, job);
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
    hf_group_extend(&p->group, deadline_ns);
}

void hf_program_end(hf_process *p, uint32_t grace_ms)
{
    if (p->done || p->group.over || p->never_started)
        return;
    p->ended = true;
    if (p->group.pid == 0) /* it waits for what ran before it */
        atomic_store(&p->sweep.until_ns, 1);
    else
        hf_group_end(&p->group, grace_ms);
}

void hf_program_free(hf_process *p)
{
    if (p == NULL)
        return;
    HF_ASSERT(p->done);
    free_process(p);
}

/* ---- all of them ---- */

hf_err hf_programs_new(hf_programs **out, struct uv_loop_s *loop, hf_groups *groups,
                       const hf_programs_opts *opts)
{
    hf_programs *programs = calloc(1, sizeof *programs);
    if (programs == NULL)
        return HF_NOMEM;
    programs->loop = loop;
    programs->groups = groups;
    programs->opts = *opts;
    hf_groups_enter(groups);
    *out = programs;
    return HF_OK;
}

static void settle(hf_programs *programs)
{
    if (programs->closing && programs->running == NULL && !programs->closed) {
        programs->closed = true;
        hf_groups_leave(programs->groups);
        if (programs->closed_cb != NULL)
            programs->closed_cb(programs->closed_arg);
    }
    if (programs->closed && programs->n_processes == 0) {
        hf_groups_done(programs->groups);
        free(programs);
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
