/* spawn.c - how many programs a bare libuv loop runs in a second: the reference for a
 * worker's programs.
 *
 *     spawn PROGRAMS CONCURRENCY PAYLOAD_BYTES PATH [ARGUMENT...]
 *
 * As many as CONCURRENCY run at a time, each in a session of its own, with a pipe for its
 * standard input (the payload, then its end) and one for each output, read to its end.
 * There is nothing else: no jobs, no Redis, no locks, no time-outs. One line of JSON
 * gives the number of programs in a second. */
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/text.h"

enum { PIPES = 3, READ_SIZE = 64 << 10 };

typedef struct bare {
    uv_loop_t *loop;
    char **argv;
    char *payload;
    size_t payload_len;
    int64_t left, failed;
    char bytes[READ_SIZE]; /* for one read at a time */
} bare;

typedef struct slot {
    bare *all;
    uv_process_t process;
    uv_pipe_t pipes[PIPES];
    uv_write_t write;
    int open; /* handles */
} slot;

static void start(slot *s);

/* The next one takes its place when nothing of it is left. */
static void on_closed(uv_handle_t *handle)
{
    slot *s = handle->data;
    if (--s->open > 0)
        return;
    start(s);
}

static void close_handle(uv_handle_t *handle)
{
    if (!uv_is_closing(handle))
        uv_close(handle, on_closed);
}

static void on_ended(uv_process_t *process, int64_t status, int sig)
{
    slot *s = process->data;
    s->all->failed += status != 0 || sig != 0;
    close_handle((uv_handle_t *)process);
    close_handle((uv_handle_t *)&s->pipes[0]);
}

static void on_written(uv_write_t *write, int status)
{
    (void)status; /* a program need not read its payload */
    close_handle((uv_handle_t *)write->handle);
}

static void on_alloc(uv_handle_t *handle, size_t size, uv_buf_t *buf)
{
    slot *s = handle->data;
    (void)size;
    *buf = uv_buf_init(s->all->bytes, READ_SIZE);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    (void)buf;
    if (n < 0)
        close_handle((uv_handle_t *)stream);
}

static bool spawn(slot *s)
{
    static const unsigned modes[PIPES] = {UV_READABLE_PIPE, UV_WRITABLE_PIPE,
                                          UV_WRITABLE_PIPE};
    uv_stdio_container_t stdio[PIPES];
    for (int i = 0; i < PIPES; i++) {
        uv_pipe_init(s->all->loop, &s->pipes[i], 0);
        s->pipes[i].data = s;
        stdio[i].flags = (uv_stdio_flags)(UV_CREATE_PIPE | modes[i]);
        stdio[i].data.stream = (uv_stream_t *)&s->pipes[i];
    }
    const uv_process_options_t options = {.exit_cb = on_ended,
                                          .file = s->all->argv[0],
                                          .args = s->all->argv,
                                          .flags = UV_PROCESS_DETACHED,
                                          .stdio_count = PIPES,
                                          .stdio = stdio};
    s->process.data = s;
    s->open = PIPES + 1;
    return uv_spawn(s->all->loop, &s->process, &options) == 0;
}

static void start(slot *s)
{
    bare *all = s->all;
    if (all->left == 0)
        return;
    all->left--;
    if (!spawn(s)) {
        (void)fprintf(stderr, "spawn: no program can be started\n");
        all->failed++;
        all->left = 0;
        return;
    }
    uv_buf_t buf = uv_buf_init(all->payload, (unsigned)all->payload_len);
    uv_write(&s->write, (uv_stream_t *)&s->pipes[0], &buf, 1, on_written);
    for (int i = 1; i < PIPES; i++)
        uv_read_start((uv_stream_t *)&s->pipes[i], on_alloc, on_read);
}

static void run(bare *all, slot *slots, size_t concurrency)
{
    double n = (double)all->left;
    uint64_t since_ns = hf_boot_ns();
    for (size_t i = 0; i < concurrency; i++) {
        slots[i].all = all;
        start(&slots[i]);
    }
    uv_run(all->loop, UV_RUN_DEFAULT);
    double seconds = (double)(hf_boot_ns() - since_ns) / 1e9;
    printf("{\"per_s\": %.1f}\n", n / seconds);
}

int main(int argc, char **argv)
{
    static bare all;
    int64_t programs, concurrency, bytes;
    uv_loop_t loop;
    if (argc < 5 || !hf_parse_int(argv[1], 1, INT32_MAX, &programs) ||
        !hf_parse_int(argv[2], 1, 1024, &concurrency) ||
        !hf_parse_int(argv[3], 0, 1 << 20, &bytes)) {
        (void)fprintf(stderr, "spawn: expected what the file's head says\n");
        return 64;
    }
    all.payload = calloc(1, (size_t)bytes + 1);
    slot *slots = calloc((size_t)concurrency, sizeof *slots);
    if (all.payload == NULL || slots == NULL || uv_loop_init(&loop) != 0) {
        free(slots);
        free(all.payload);
        return 1;
    }
    all.loop = &loop;
    all.argv = argv + 4;
    all.payload_len = (size_t)bytes;
    all.left = programs;
    (void)signal(SIGPIPE, SIG_IGN); /* a program may end before it has its payload */
    run(&all, slots, (size_t)concurrency);
    free(slots);
    free(all.payload);
    if (all.failed > 0)
        (void)fprintf(stderr, "spawn: %" PRId64 " programs failed\n", all.failed);
    return all.failed == 0 ? 0 : 1;
}
