/* process.c - one program, from its fork to its end, and its four pipes: its payload, its
 * outputs, its verdict.
 *
 * The end, in this order: the leader has ended (pidfd) but is not reaped, so its number
 * is still its own -> KILL to what is left of the group -> the minder forgets the group
 * -> the leader is reaped -> its outputs are read to their ends, or given up after a
 * moment (a process that left the group may hold them) -> all handles are closed ->
 * done_cb. */
#include "worker/process.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/fdlock.h"
#include "lock/spawn.h"
#include "worker/program_text.h"

enum { DRAIN_READS = 16 /* reads of one pipe in one go */ };

static void close_pipe(hf_process_pipe *pipe)
{
    if (pipe->fd < 0)
        return;
    if (pipe->polled) {
        pipe->poll.data = pipe->process;
        uv_close((uv_handle_t *)&pipe->poll, hf_process_on_closed);
    }
    pipe->polled = false;
    hf_close_fd(&pipe->fd);
}

/* A program that closes its stdin early, or never reads it, is free to do so. */
static void write_payload(hf_process *p)
{
    hf_process_pipe *pipe = &p->pipes[HF_PIPE_IN];
    hf_sigpipe state;
    hf_sigpipe_begin(&state);
    bool full = false;
    while (p->payload_left > 0 && !full) {
        ssize_t n = write(pipe->fd, p->payload, p->payload_left);
        if (n >= 0) {
            p->payload += n;
            p->payload_left -= (size_t)n;
        } else if (errno == EAGAIN) {
            full = true;
        } else if (errno != EINTR) {
            p->payload_left = 0;
        }
    }
    hf_sigpipe_end(&state);
    if (!full)
        close_pipe(pipe);
}

static void on_writable(uv_poll_t *poll, int status, int events)
{
    (void)events;
    hf_process_pipe *pipe = poll->data;
    if (status < 0)
        close_pipe(pipe);
    else
        write_payload(pipe->process);
}

static void take(hf_process *p, int which, const char *bytes, size_t len)
{
    if (which != HF_PIPE_VERDICT) {
        hf_output_feed(&p->output, which, bytes, len);
        return;
    }
    size_t room = p->verdict.max - p->verdict.len;
    hf_buf_add(&p->verdict, bytes, len < room ? len : room);
}

/* One read. False: there is nothing to be had now, or ever. */
static bool read_pipe(hf_process_pipe *pipe)
{
    hf_process *p = pipe->process;
    char *bytes = p->owner->bytes;
    ssize_t n = read(pipe->fd, bytes, HF_PROCESS_READ_SIZE);
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

static bool is_read_out(const hf_process *p)
{
    return p->pipes[HF_PIPE_OUT].fd < 0 && p->pipes[HF_PIPE_ERR].fd < 0 &&
           p->pipes[HF_PIPE_VERDICT].fd < 0;
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    (void)status, (void)events; /* the read says more */
    hf_process_pipe *pipe = poll->data;
    hf_process *p = pipe->process;
    read_pipe(pipe);
    if (p->reaped && is_read_out(p))
        hf_process_close(p);
}

static bool poll_pipe(hf_process *p, int which)
{
    hf_process_pipe *pipe = &p->pipes[which];
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

/* ---- as worker/process.c wants them ---- */

static hf_err poll_pipes(hf_process *p)
{
    for (int i = HF_PIPE_OUT; i <= HF_PIPE_VERDICT; i++)
        if (!poll_pipe(p, i))
            return HF_SYSTEM;
    /* What fits into a pipe at once, and that is nearly everything, needs no handle. */
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

static bool drain(hf_process *p)
{
    close_pipe(&p->pipes[HF_PIPE_IN]);
    for (int i = HF_PIPE_OUT; i <= HF_PIPE_VERDICT; i++)
        for (int n = 0; n < DRAIN_READS && p->pipes[i].fd >= 0; n++)
            if (!read_pipe(&p->pipes[i]))
                break;
    return is_read_out(p);
}

#ifndef P_PIDFD
#define P_PIDFD 3
#endif

enum { GRACE_MS = 5000 /* where the program's specification names none */ };

/* ---- its end ---- */

static void say_not_started(const hf_process *p, char text[HF_PROGRAM_ERROR_MAX + 1])
{
    hf_spawn_fault fault = p->fault;
    const char *name = p->spec->argv[0], *why = strerror(fault.error);
    if (fault.step == HF_SPAWN_MINDER)
        snprintf(text, HF_PROGRAM_ERROR_MAX, "the minder cannot be told: %s", why);
    else if (fault.step == HF_SPAWN_CWD)
        snprintf(text, HF_PROGRAM_ERROR_MAX, "cannot enter '%s': %s", p->spec->cwd, why);
    else if (fault.step == HF_SPAWN_EXEC)
        snprintf(text, HF_PROGRAM_ERROR_MAX, "cannot run '%s': %s", name, why);
    else
        snprintf(text, HF_PROGRAM_ERROR_MAX, "cannot prepare '%s': %s", name, why);
}

static void judge(hf_process *p, hf_program_result *result,
                  char text[HF_PROGRAM_ERROR_MAX + 1])
{
    char stderr_end[HF_PROGRAM_ERROR_MAX + 1];
    hf_verdict_line line;
    hf_spawn_fault fault = p->fault;
    *result = (hf_program_result){.verdict = HF_VERDICT_RETRY,
                                  .error = text,
                                  .started = fault.step == HF_SPAWN_NONE,
                                  .minder_failed = fault.step == HF_SPAWN_MINDER,
                                  .by_signal = p->by_signal,
                                  .timed_out = p->timed_out,
                                  .ended = p->ended,
                                  .asked = p->minded.asked,
                                  .status = p->status};
    if (fault.step != HF_SPAWN_NONE) {
        say_not_started(p, text);
        return;
    }
    hf_output_error(&p->output, stderr_end);
    (void)hf_verdict_line_read(&line, p->verdict.data,
                               p->verdict.len); /* it says so itself */
    hf_program_end_state end = {.by_signal = p->by_signal,
                                .timed_out = p->timed_out,
                                .status = p->status,
                                .timeout_ms = p->timeout_ms,
                                .stderr_end = stderr_end};
    hf_program_judge(result, &end, &line, text);
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
    hf_buf_done(&p->verdict);
    free(p);
    owner->n_processes--;
    hf_programs_settle(owner);
}

/* All its handles are closed: nothing of libuv knows it any more. */
static void finish(hf_process *p)
{
    hf_programs *owner = p->owner;
    hf_program_result result;
    char text[HF_PROGRAM_ERROR_MAX + 1];
    if (p->abandoned) {
        hf_close_fd(&p->pidfd);
        free_process(p);
        return;
    }
    hf_output_end(&p->output);
    judge(p, &result, text);
    hf_close_fd(&p->pidfd);
    leave_running(p);
    p->done = true;
    p->done_cb(&result, p->arg); /* may free it */
    hf_programs_settle(owner);
}

void hf_process_on_closed(uv_handle_t *handle)
{
    hf_process *p = handle->data;
    if (--p->handles == 0)
        finish(p);
}

void hf_process_close(hf_process *p)
{
    if (p->closing)
        return;
    p->closing = true;
    for (int i = 0; i < HF_PROCESS_PIPES; i++)
        close_pipe(&p->pipes[i]);
    if (p->has_timer)
        uv_close((uv_handle_t *)&p->timer, hf_process_on_closed);
    if (p->watched)
        uv_close((uv_handle_t *)&p->watch, hf_process_on_closed);
}

void hf_process_abandon(hf_process *p)
{
    p->abandoned = true;
    hf_process_close(p);
    if (p->handles == 0)
        finish(p);
}

/* ---- its time ---- */

static void on_timer(uv_timer_t *timer);

static void schedule(hf_process *p)
{
    const uint64_t times[] = {p->timeout_ns, p->kill_ns, p->drained_ns};
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

/* Has its number been given up? A host that ignores SIGCHLD, or waits for any child, has
 * reaped it then. */
static bool is_reaped(const hf_process *p)
{
    siginfo_t info;
    return waitid(P_PIDFD, (id_t)p->pidfd, &info, WEXITED | WNOWAIT | WNOHANG) < 0 &&
           errno == ECHILD;
}

/* To its group, never to another one that has taken its number. False with errno. */
static bool signal_group(const hf_process *p, int sig)
{
    if (hf_spawn_signal_group(p->pidfd, sig))
        return true;
    if (errno != ENOTSUP)
        return false;
    if (!is_reaped(p))
        return kill(-p->pid, sig) == 0;
    errno = ESRCH; /* who is left cannot be told from others */
    return false;
}

/* What became another user (sudo) outlives its lease. */
static void tell_denied(hf_process *p)
{
    const hf_programs_opts *opts = &p->owner->opts;
    if (!p->denied && opts->on_denied != NULL)
        opts->on_denied(p->arg, opts->arg);
    p->denied = true;
}

static void send_signal(hf_process *p, int sig)
{
    if (!signal_group(p, sig) && errno == EPERM)
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
    if (p->kill_ns == 0)
        send_signal(p, SIGTERM);
    if (p->kill_ns == 0 || kill_ns < p->kill_ns)
        p->kill_ns = kill_ns;
}

/* True: the leader has ended, and how is known. It is not reaped. */
static bool has_ended(hf_process *p)
{
    siginfo_t info = {0};
    int got;
    do
        got = waitid(P_PIDFD, (id_t)p->pidfd, &info, WEXITED | WNOWAIT | WNOHANG);
    while (got < 0 && errno == EINTR);
    if (got == 0 && info.si_pid == 0)
        return false;
    /* A host that ignores SIGCHLD has it reaped by the kernel, and its status is lost. */
    p->by_signal = got == 0 && info.si_code != CLD_EXITED;
    p->status = got == 0 ? info.si_status : -1;
    return true;
}

/* Of what the leader left, once it is gone: before, its own end hides that others were
 * not reached. By number nothing is signalled, only asked. */
static bool is_left_denied(const hf_process *p)
{
    bool reached = hf_spawn_signal_group(p->pidfd, 0);
    if (!reached && errno == ENOTSUP)
        reached = kill(-p->pid, 0) == 0;
    return !reached && errno == EPERM;
}

static void reap(hf_process *p)
{
    send_signal(p, SIGKILL);
    hf_minder_remove(p->owner->minder, &p->minded);
    siginfo_t info;
    while (waitid(P_PIDFD, (id_t)p->pidfd, &info, WEXITED) < 0 && errno == EINTR)
        continue;
    if (is_left_denied(p))
        tell_denied(p);
    p->pid = 0;
    p->reaped = true;
    p->timeout_ns = p->kill_ns = 0;
    uv_poll_stop(&p->watch);
    if (drain(p)) {
        hf_process_close(p);
        return;
    }
    p->drained_ns = hf_boot_ns() + HF_PROGRAM_DRAIN_MS * HF_MS_NS;
    schedule(p);
}

static void on_watch(uv_poll_t *poll, int status, int events)
{
    (void)status, (void)events;
    hf_process *p = poll->data;
    if (!p->reaped && has_ended(p))
        reap(p);
}

static bool is_due(uint64_t at_ns, uint64_t now_ns)
{
    return at_ns != 0 && now_ns >= at_ns;
}

static void on_timer(uv_timer_t *timer)
{
    hf_process *p = timer->data;
    uint64_t now_ns = hf_boot_ns();
    if (is_due(p->drained_ns, now_ns)) {
        hf_process_close(p);
        return;
    }
    /* A program that ended in time has not timed out because this loop was slow. */
    if (!p->reaped && has_ended(p)) {
        reap(p);
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

hf_process *hf_process_new(hf_programs *programs, const hf_program *spec,
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
    for (int i = 0; i < HF_PROCESS_PIPES; i++)
        p->pipes[i] = (hf_process_pipe){.process = p, .fd = -1};
    hf_output_init(&p->output, on_line, p);
    hf_buf_init(&p->verdict, HF_VERDICT_LINE_MAX + 1);
    programs->n_processes++;
    return p;
}

hf_err hf_process_prepare(hf_process *p)
{
    uv_timer_init(p->owner->loop, &p->timer);
    p->timer.data = p;
    p->has_timer = true;
    p->handles++;
    return poll_pipes(p);
}

hf_err hf_process_run(hf_process *p, const hf_program_job *job)
{
    hf_programs *owner = p->owner;
    int failed = uv_poll_init(owner->loop, &p->watch, p->pidfd);
    if (failed != 0) {
        hf_spawn_undo(p->pid, hf_minder_fd(owner->minder));
        errno = -failed;
        return HF_SYSTEM;
    }
    p->watch.data = p;
    p->watched = true;
    p->handles++;
    hf_minder_add(owner->minder, &p->minded, p->pid, job->deadline_ns);
    uv_poll_start(&p->watch, UV_READABLE, on_watch);
    start_pipes(p);
    if (p->timeout_ms > 0)
        p->timeout_ns = hf_boot_ns() + p->timeout_ms * HF_MS_NS;
    schedule(p);
    p->next = owner->running;
    if (p->next != NULL)
        p->next->prev = p;
    owner->running = p;
    return HF_OK;
}

/* ---- what others do with it ---- */

void hf_program_extend(hf_process *p, uint64_t deadline_ns)
{
    hf_minder_extend(p->owner->minder, &p->minded, deadline_ns);
}

void hf_program_end(hf_process *p, uint32_t grace_ms)
{
    if (p->done || p->reaped)
        return;
    p->ended = true;
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
