/* outputs.c - worker/pool/outputs.h. */
#include "worker/pool/outputs.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "lock/minder/spawn.h"

enum { READ_SIZE = 64 << 10, READS = 4 };

static void on_line(int stream, const char *text, size_t len, void *arg)
{
    const hf_outputs *outputs = arg;
    outputs->calls->line(stream, text, len, outputs->arg);
}

void hf_outputs_init(hf_outputs *outputs, const hf_outputs_calls *calls, void *arg)
{
    outputs->calls = calls;
    outputs->arg = arg;
    for (int i = 0; i < 2; i++) {
        memset(&outputs->ends[i], 0, sizeof outputs->ends[i]);
        outputs->ends[i].owner = outputs;
        outputs->ends[i].fd = -1;
    }
    hf_program_output_init(&outputs->text, on_line, outputs);
}

int hf_outputs_open(hf_outputs *outputs, uv_loop_t *loop, int far[2])
{
    for (int i = 0; i < 2; i++) {
        hf_output_end *end = &outputs->ends[i];
        int fds[2];
        if (!hf_spawn_pipe(fds, 0))
            return i;
        end->fd = fds[0];
        far[i] = fds[1];
        int failed = uv_poll_init(loop, &end->poll, end->fd);
        if (failed != 0) {
            hf_spawn_close_fd(&end->fd);
            errno = -failed;
            return i;
        }
        end->poll.data = end;
        end->polled = true;
    }
    return 2;
}

/* ---- reading ---- */

static bool is_open(const hf_output_end *end)
{
    return end->fd >= 0 && !end->ended;
}

/* False: there is nothing more to read now. */
static bool read_end(hf_output_end *end)
{
    hf_outputs *outputs = end->owner;
    char bytes[READ_SIZE];
    ssize_t n = read(end->fd, bytes, sizeof bytes);
    if (n > 0) {
        int stream = end == &outputs->ends[0] ? 1 : 2;
        hf_program_output_feed(&outputs->text, stream, bytes, (size_t)n);
        outputs->calls->bytes(bytes, (size_t)n, outputs->arg);
        return (size_t)n == sizeof bytes;
    }
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return errno == EINTR;
    end->ended = true;
    uv_poll_stop(&end->poll);
    return false;
}

/* One system call for both, because most runs write nothing. */
static bool has_something(const hf_outputs *outputs)
{
    struct pollfd fds[2];
    for (int i = 0; i < 2; i++)
        fds[i] =
            (struct pollfd){.fd = is_open(&outputs->ends[i]) ? outputs->ends[i].fd : -1,
                            .events = POLLIN};
    return poll(fds, 2, 0) != 0; /* -1: a signal, so it is not known */
}

void hf_outputs_read(hf_outputs *outputs, int reads)
{
    if (!has_something(outputs))
        return;
    for (int i = 0; i < 2; i++)
        for (int n = 0; n < reads && is_open(&outputs->ends[i]); n++)
            if (!read_end(&outputs->ends[i]))
                break;
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    (void)status, (void)events; /* the reads say more */
    hf_output_end *end = poll->data;
    hf_outputs_read(end->owner, READS);
}

void hf_outputs_watch(hf_outputs *outputs)
{
    for (int i = 0; i < 2; i++)
        uv_poll_start(&outputs->ends[i].poll, UV_READABLE, on_poll);
}

void hf_outputs_end(hf_outputs *outputs)
{
    hf_program_output_end(&outputs->text);
}

void hf_outputs_begin(hf_outputs *outputs)
{
    hf_program_output_end(&outputs->text);
    hf_program_output_init(&outputs->text, on_line, outputs);
}

/* ---- the end ---- */

static void on_closed(uv_handle_t *handle)
{
    const hf_output_end *end = handle->data;
    end->owner->calls->closed(end->owner->arg);
}

void hf_outputs_close(hf_outputs *outputs)
{
    for (int i = 0; i < 2; i++) {
        hf_output_end *end = &outputs->ends[i];
        if (end->polled)
            uv_close((uv_handle_t *)&end->poll, on_closed);
        end->polled = false;
        hf_spawn_close_fd(&end->fd); /* with its handle, as in hf_wire_close() */
    }
}
