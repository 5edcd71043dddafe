/* Lines for a stream that may block or fail: who writes waits for neither, and what is
 * missing is counted where it is missing. */
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/writer.h"
#include "tests/support/eventually.h"

/* FIRST_LINES: more than a pipe takes, and fewer than a buffer. */
enum { LINES = 300000, FIRST_LINES = 10000, LINE = 16, TEXT_MAX = LINES * LINE + 4096 };

static void tell_gap(hf_buf *out, uint64_t lines, void *arg)
{
    (void)arg;
    hf_buf_printf(out, "missing %" PRIu64 "\n", lines);
}

static void put(hf_writer *w, const char *line)
{
    hf_writer_put(w, line, strlen(line));
}

/* Reads what is there; true as soon as the text ends with `end`. */
static bool has_come(int fd, hf_buf *text, const char *end)
{
    char part[4096];
    ssize_t n;
    while ((n = read(fd, part, sizeof part)) > 0)
        hf_buf_add(text, part, (size_t)n);
    assert_int_equal(hf_buf_err(text), HF_OK);
    size_t len = strlen(end);
    return text->len >= len && memcmp(text->data + text->len - len, end, len) == 0;
}

static void open_pipe(int fds[2])
{
    assert_int_equal(pipe(fds), 0);
    assert_int_equal(fcntl(fds[0], F_SETFL, O_NONBLOCK), 0);
}

static bool is_full(int fd)
{
    struct pollfd room = {.fd = fd, .events = POLLOUT};
    return poll(&room, 1, 0) == 0;
}

static void what_a_blocked_stream_cannot_take_is_counted_in_its_place(void **state)
{
    (void)state;
    int fds[2];
    char line[LINE + 1], end[64];
    hf_buf text;
    open_pipe(fds);
    hf_writer *w = hf_writer_open(fds[1], tell_gap, NULL);
    assert_non_null(w);
    for (int i = 0; i < LINES; i++) {
        (void)snprintf(line, sizeof line, "%015d\n", i);
        put(w, line);
        if (i == FIRST_LINES) /* its thread has begun, and waits for room */
            EVENTUALLY(20000, is_full(fds[1]));
    }
    assert_false(hf_writer_flush(w, 1));
    hf_buf_init(&text, TEXT_MAX);
    EVENTUALLY(20000,
               has_come(fds[0], &text, "\n") && strstr(text.data, "missing") != NULL);
    assert_true(hf_writer_flush(w, 20000));
    put(w, "and on it goes\n");
    EVENTUALLY(20000, has_come(fds[0], &text, "\nand on it goes\n"));
    int whole = 0;
    const char *at = text.data;
    for (; *at != 'm'; at = strchr(at, '\n') + 1)
        assert_int_equal(strtol(at, NULL, 10), whole++);
    (void)snprintf(end, sizeof end, "missing %d\nand on it goes\n", LINES - whole);
    assert_string_equal(at, end);
    hf_buf_done(&text);
    hf_writer_close(w, 20000);
    (void)close(fds[0]);
    (void)close(fds[1]);
}

static void lines_that_a_full_disk_refused_are_counted_when_it_has_room(void **state)
{
    (void)state;
    char text[64];
    FILE *file = tmpfile();
    int fd = open("/dev/full", O_WRONLY);
    assert_non_null(file);
    assert_true(fd >= 0);
    hf_writer *w = hf_writer_open(fd, tell_gap, NULL);
    put(w, "one\ntwo\n");
    assert_true(hf_writer_flush(w, 20000));
    assert_int_equal(dup2(fileno(file), fd), fd);
    put(w, "three\n");
    hf_writer_close(w, 20000);
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    assert_string_equal(text, "missing 2\nthree\n");
    (void)fclose(file);
    (void)close(fd);
}

static void an_inherited_stream_that_does_not_block_loses_nothing(void **state)
{
    (void)state;
    int fds[2];
    hf_buf text;
    open_pipe(fds);
    assert_int_equal(fcntl(fds[1], F_SETFL, O_NONBLOCK), 0);
    hf_writer *w = hf_writer_open(fds[1], tell_gap, NULL);
    for (int i = 0; i < 30000; i++)
        put(w, "a line of text\n");
    put(w, "the end\n");
    hf_buf_init(&text, TEXT_MAX);
    EVENTUALLY(20000, has_come(fds[0], &text, "\nthe end\n"));
    assert_int_equal(text.len, 30000 * strlen("a line of text\n") + strlen("the end\n"));
    hf_buf_done(&text);
    hf_writer_close(w, 20000);
    (void)close(fds[0]);
    (void)close(fds[1]);
}

/* After that its thread is on its own, and calls no callback. */
static void the_end_does_not_wait_for_a_blocked_stream(void **state)
{
    (void)state;
    int fds[2];
    open_pipe(fds);
    hf_writer *w = hf_writer_open(fds[1], tell_gap, NULL);
    for (int i = 0; i < 30000; i++)
        put(w, "a line of text\n");
    hf_writer_close(w, 10);
    (void)close(fds[0]); /* its thread ends, as no reader is left */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_blocked_stream_cannot_take_is_counted_in_its_place),
        cmocka_unit_test(lines_that_a_full_disk_refused_are_counted_when_it_has_room),
        cmocka_unit_test(an_inherited_stream_that_does_not_block_loses_nothing),
        cmocka_unit_test(the_end_does_not_wait_for_a_blocked_stream),
    };
    (void)signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
