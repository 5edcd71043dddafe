/* wire.c - worker/pool/wire.h. */
#include "worker/pool/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "holdfast/job.h"
#include "lock/minder/spawn.h"

enum {
    READ_SIZE = 64 << 10,
    READS = 4, /* in one turn of the loop */
    OUT_MAX = HF_PAYLOAD_CEILING + (1 << 20)
};

static void set_watch(hf_wire *wire);

void hf_wire_init(hf_wire *wire, const hf_wire_calls *calls, void *arg)
{
    memset(wire, 0, sizeof *wire);
    wire->calls = calls;
    wire->arg = arg;
    wire->fd = -1;
    hf_frame_reader_init(&wire->reader);
    hf_buf_init(&wire->out, OUT_MAX);
}

void hf_wire_done(hf_wire *wire)
{
    hf_frame_reader_done(&wire->reader);
    hf_buf_done(&wire->out);
}

bool hf_wire_take(hf_wire *wire, uv_loop_t *loop, int fd)
{
    wire->fd = fd;
    int failed = uv_poll_init(loop, &wire->poll, fd);
    if (failed != 0) {
        hf_spawn_close_fd(&wire->fd);
        errno = -failed;
        return false;
    }
    wire->poll.data = wire;
    wire->polled = true;
    return true;
}

bool hf_wire_open(hf_wire *wire, uv_loop_t *loop, int *far)
{
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
        return false;
    *far = fds[1];
    if (fcntl(fds[0], F_SETFL, O_NONBLOCK) == 0) /* a new one has no others */
        return hf_wire_take(wire, loop, fds[0]);
    int error = errno;
    hf_spawn_close_fd(&fds[0]);
    errno = error;
    return false;
}

static void on_closed(uv_handle_t *handle)
{
    const hf_wire *wire = handle->data;
    wire->calls->closed(wire->arg);
}

/* The descriptor goes with its handle: libuv would take the next one of that number for
 * this one. */
void hf_wire_close(hf_wire *wire)
{
    if (wire->polled)
        uv_close((uv_handle_t *)&wire->poll, on_closed);
    wire->polled = false;
    hf_spawn_close_fd(&wire->fd);
}

/* ---- what comes ---- */

static void take_frames(hf_wire *wire, const char *bytes, size_t len)
{
    hf_frame frame;
    hf_frame_kind kind;
    while ((kind = hf_frame_next(&wire->reader, &bytes, &len, &frame)) != HF_FRAME_NONE) {
        if (kind == HF_FRAME_BROKEN) {
            wire->calls->broken(wire->reader.fault, wire->arg);
            return;
        }
        wire->calls->frame(&frame, wire->arg);
    }
}

/* Linux says it once. */
static void note_reset(hf_wire *wire, ssize_t n)
{
    wire->reset = wire->reset || (n < 0 && errno == ECONNRESET);
}

/* False: there is nothing more to read now. */
static bool read_once(hf_wire *wire)
{
    char bytes[READ_SIZE];
    ssize_t n = read(wire->fd, bytes, sizeof bytes);
    if (n > 0) {
        hf_spin_read(&wire->spin, hf_boot_ns());
        take_frames(wire, bytes, (size_t)n);
        return (size_t)n == sizeof bytes;
    }
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return errno == EINTR;
    note_reset(wire, n);
    wire->ended = true;
    if (wire->polled)
        uv_poll_stop(&wire->poll);
    wire->calls->ended(wire->arg);
    return false;
}

void hf_wire_read(hf_wire *wire, int reads)
{
    while (hf_wire_is_open(wire) && reads-- > 0)
        if (!read_once(wire))
            break;
}

/* Linux tells the writer by ECONNRESET that the other side was closed with bytes unread.
 * If another process has that side as well, it is still open: then TIOCOUTQ counts what
 * is not read to its end. */
bool hf_wire_has_unread(const hf_wire *wire)
{
    int bytes = 0;
    return wire->reset ||
           (hf_wire_is_open(wire) && ioctl(wire->fd, TIOCOUTQ, &bytes) == 0 && bytes > 0);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    hf_wire *wire = poll->data;
    if (status == 0 && (events & UV_WRITABLE) != 0)
        (void)!hf_wire_flush(wire);
    hf_wire_read(wire, READS);
}

static void set_watch(hf_wire *wire)
{
    if (wire->polled && !wire->ended)
        uv_poll_start(&wire->poll, UV_READABLE | (wire->out.len > 0 ? UV_WRITABLE : 0),
                      on_poll);
}

void hf_wire_watch(hf_wire *wire)
{
    set_watch(wire);
}

/* ---- what goes ---- */

/* The reader finds the end of a socket that is gone. */
bool hf_wire_flush(hf_wire *wire)
{
    bool waited = uv_is_active((uv_handle_t *)&wire->poll) && wire->out.len > 0;
    while (wire->out.len > 0 && hf_wire_is_open(wire)) {
        ssize_t n =
            send(wire->fd, wire->out.data, wire->out.len, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n > 0)
            hf_buf_cut(&wire->out, (size_t)n);
        else if (errno != EINTR)
            break;
    }
    set_watch(wire);
    if (waited && wire->out.len == 0)
        wire->calls->drained(wire->arg);
    return hf_buf_err(&wire->out) == HF_OK;
}

bool hf_wire_write(hf_wire *wire, const hf_wire_part parts[3])
{
    struct iovec vector[3];
    struct msghdr message = {.msg_iov = vector, .msg_iovlen = 3};
    ssize_t n;
    for (int i = 0; i < 3; i++)
        vector[i] = (struct iovec){(void *)(uintptr_t)parts[i].ptr, parts[i].len};
    do
        n = sendmsg(wire->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    wire->deaf = n < 0 && errno != EAGAIN;
    size_t sent = n < 0 ? 0 : (size_t)n;
    for (int i = 0; i < 3; i++) {
        size_t skip = sent < parts[i].len ? sent : parts[i].len;
        sent -= skip;
        if (skip < parts[i].len)
            hf_buf_add(&wire->out, (const char *)parts[i].ptr + skip,
                       parts[i].len - skip);
    }
    if (wire->out.len > 0)
        set_watch(wire);
    return hf_buf_err(&wire->out) == HF_OK;
}

void hf_wire_spin(hf_wire *wire)
{
    uint64_t now_ns = hf_boot_ns(), end_ns = hf_spin_begin(&wire->spin, now_ns);
    ssize_t n = -1;
    char first;
    if (end_ns == 0)
        return;
    while (n < 0 && now_ns < end_ns) {
        n = recv(wire->fd, &first, 1, MSG_PEEK | MSG_DONTWAIT);
        note_reset(wire, n);
        now_ns = hf_boot_ns();
    }
    hf_spin_end(&wire->spin, n < 0);
}
