/* test_http.c - the server: a request whose answer finds no memory ends with its
 * connection, and the others go on. */
#define _GNU_SOURCE /* RTLD_NEXT */
#include "dashboard/http.h"

#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>
#include <microhttpd.h>

#include "base/base.h"
#include "tests/support/eventually.h"

enum {
    SOON_MS = 4000, /* before any bound of the server ends */
    LONG_MS = 20000,
    WHILE_MS = 100
};

static uv_loop_t loop;
static hf_http *http;
static unsigned failures; /* this many of the next answers find no memory */
static bool later;        /* the request is kept, and answered by the test */
static hf_conn *kept;
static char heard[1024];

/* Those of the server come here. */
__attribute__((visibility("default"))) struct MHD_Response *
MHD_create_response_from_buffer(size_t size, void *buffer,
                                enum MHD_ResponseMemoryMode mode)
{
    struct MHD_Response *(*real)(size_t, void *, enum MHD_ResponseMemoryMode) = NULL;
    void *found = dlsym(RTLD_NEXT, "MHD_create_response_from_buffer");
    assert_non_null(found);
    memcpy(&real, &found, sizeof real);
    if (failures == 0)
        return real(size, buffer, mode);
    failures--;
    return NULL;
}

static void answer(hf_conn *conn)
{
    hf_conn_answer(
        conn,
        &(hf_http_answer){.status = 200, .type = "text/plain", .body = "ok", .len = 2});
}

static void on_request(hf_conn *conn, void *arg)
{
    (void)arg;
    kept = conn;
    if (!later)
        answer(conn);
}

static int set_up(void **state)
{
    (void)state;
    failures = 0;
    later = false;
    kept = NULL;
    return uv_loop_init(&loop) == 0 &&
                   hf_http_open(&http, &loop, -1, on_request, NULL) == HF_OK
               ? 0
               : -1;
}

static int tear_down(void **state)
{
    (void)state;
    hf_http_close(http);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    return uv_loop_close(&loop);
}

static int connect_to_it(void)
{
    int ends[2];
    static const char request[] = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    hf_http_serve(http, ends[1]);
    assert_int_equal(send(ends[0], request, sizeof request - 1, 0), sizeof request - 1);
    heard[0] = '\0';
    return ends[0];
}

/* Turns the loop. Whether the server has closed the connection. */
static bool has_ended(int fd)
{
    char piece[256];
    (void)uv_run(&loop, UV_RUN_NOWAIT);
    const ssize_t n = recv(fd, piece, sizeof piece - 1, MSG_DONTWAIT);
    const size_t len = strlen(heard);
    if (n > 0)
        (void)snprintf(heard + len, sizeof heard - len, "%.*s", (int)n, piece);
    return n == 0 || (n < 0 && errno != EAGAIN);
}

static bool is_kept(int fd)
{
    return !has_ended(fd) && kept != NULL;
}

static void await_answer(int fd)
{
    EVENTUALLY(SOON_MS, has_ended(fd) || strstr(heard, "\r\n\r\nok") != NULL);
    assert_non_null(strstr(heard, "HTTP/1.1 200 "));
}

static void is_answered(int fd)
{
    await_answer(fd);
    (void)close(fd);
}

static void without_memory_for_an_answer_the_connection_ends(void **state)
{
    (void)state;
    failures = 1;
    const int fd = connect_to_it();
    EVENTUALLY(SOON_MS, has_ended(fd));
    assert_string_equal(heard, "");
    (void)close(fd);
    is_answered(connect_to_it());
}

static void a_late_answer_without_memory_ends_it_too(void **state)
{
    (void)state;
    later = true;
    failures = 1;
    const int fd = connect_to_it();
    EVENTUALLY(SOON_MS, is_kept(fd));
    answer(kept);
    EVENTUALLY(SOON_MS, has_ended(fd));
    assert_string_equal(heard, "");
    (void)close(fd);
    later = false;
    is_answered(connect_to_it());
}

/* The newest one is served, and the others are left alone. */
static void above_the_bound_a_new_connection_ends_the_oldest(void **state)
{
    int fds[HF_HTTP_CONNECTIONS + 1];
    (void)state;
    for (size_t i = 0; i < HF_COUNT(fds); i++) {
        fds[i] = connect_to_it();
        await_answer(fds[i]);
    }
    EVENTUALLY(SOON_MS, has_ended(fds[0]));
    for (size_t i = 1; i < HF_COUNT(fds); i++)
        assert_false(has_ended(fds[i]));
    for (size_t i = 0; i < HF_COUNT(fds); i++)
        (void)close(fds[i]);
}

/* However often another byte comes. A connection that was idle before lasts longer. */
static void a_request_that_is_not_whole_ends(void **state)
{
    int ends[2];
    (void)state;
    const int idle = connect_to_it();
    await_answer(idle);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    hf_http_serve(http, ends[1]);
    assert_int_equal(send(ends[0], "GET / HTTP/1.1\r\n", 16, 0), 16);
    heard[0] = '\0';
    ALWAYS(WHILE_MS, !has_ended(ends[0]));
    EVENTUALLY(LONG_MS, send(ends[0], "a", 1, MSG_NOSIGNAL) != 1 || has_ended(ends[0]));
    assert_false(has_ended(idle));
    (void)close(ends[0]);
    (void)close(idle);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(without_memory_for_an_answer_the_connection_ends),
        TEST(a_late_answer_without_memory_ends_it_too),
        TEST(above_the_bound_a_new_connection_ends_the_oldest),
        TEST(a_request_that_is_not_whole_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
