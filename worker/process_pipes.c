/* process_pipes.c - the four pipes of a program: its payload, its outputs, its verdict.
 */
#include "worker/process.h"

#include <errno.h>
#include <unistd.h>

#include "base/fdlock.h"
#include "lock/spawn.h"

enum { DRAIN_READS = 16 /* reads of one pipe in one go */ };

void hf_process_close_pipe(hf_process_pipe *pipe)
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
        hf_process_close_pipe(pipe);
}

static void on_writable(uv_poll_t *poll, int status, int events)
{
    (void)events;
    hf_process_pipe *pipe = poll->data;
    if (status < 0)
        hf_process_close_pipe(pipe);
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
        hf_process_close_pipe(pipe);
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

hf_err hf_process_poll_pipes(hf_process *p)
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

void hf_process_start_pipes(hf_process *p)
{
    for (int i = HF_PIPE_OUT; i <= HF_PIPE_VERDICT; i++)
        uv_poll_start(&p->pipes[i].poll, UV_READABLE, on_readable);
    if (p->pipes[HF_PIPE_IN].fd >= 0)
        uv_poll_start(&p->pipes[HF_PIPE_IN].poll, UV_WRITABLE, on_writable);
}

bool hf_process_drain(hf_process *p)
{
    hf_process_close_pipe(&p->pipes[HF_PIPE_IN]);
    for (int i = HF_PIPE_OUT; i <= HF_PIPE_VERDICT; i++)
        for (int n = 0; n < DRAIN_READS && p->pipes[i].fd >= 0; n++)
            if (!read_pipe(&p->pipes[i]))
                break;
    return is_read_out(p);
}
