/* test_post.c - requests to a collector that cannot be found, or answers nonsense. */
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "tests/support/eventually.h"
#include "trace/post.h"

enum { LONG_MS = 30000 };

static atomic_bool asked, let_go;
static hf_post *post;
static hf_post_answer answer;

/* The library's look-ups come here. */
__attribute__((visibility("default"))) int
getaddrinfo(const char *restrict node, const char *restrict service,
            const struct addrinfo *restrict hints, struct addrinfo **restrict out)
{
    const uint64_t until = hf_test_now_ms() + LONG_MS;
    (void)node, (void)service, (void)hints, (void)out;
    atomic_store(&asked, true);
    while (!atomic_load(&let_go) && hf_test_now_ms() < until)
        hf_test_pause_ms(2);
    return EAI_FAIL;
}

static void open_post(const char *endpoint)
{
    char detail[HF_DETAIL_SIZE];
    assert_int_equal(hf_post_new(&post, endpoint, NULL, false, detail), HF_OK);
}

static void *send_it(void *arg)
{
    hf_post_send(post, "{}", 2, &answer);
    return arg;
}

/* Else a worker would end only when the look-up does. */
static void the_end_does_not_wait_for_a_look_up(void **state)
{
    pthread_t thread;
    (void)state;
    open_post("http://collector.invalid:4318");
    assert_int_equal(pthread_create(&thread, NULL, send_it, NULL), 0);
    EVENTUALLY(LONG_MS, atomic_load(&asked));
    const uint64_t began = hf_test_fair_ms();
    hf_post_end_at(post, hf_boot_ns());
    assert_int_equal(pthread_join(thread, NULL), 0);
    hf_post_free(post);
    assert_true(hf_test_fair_ms() - began < LONG_MS / 3);
    assert_int_equal(answer.status, 0);
    atomic_store(&let_go, true);
}

/* ---- a collector ---- */

typedef struct collector {
    int fd;
    const char *text, *again; /* what it answers, and then without end; NULL: nothing */
    bool stays;               /* until the sender has gone */
    size_t sent;
} collector;

static bool say(collector *c, int fd, const char *text)
{
    const ssize_t n = send(fd, text, strlen(text), MSG_NOSIGNAL);
    c->sent += n > 0 ? (size_t)n : 0;
    return n > 0;
}

static void *answer_one(void *arg)
{
    collector *c = arg;
    char request[4096];
    const int fd = accept(c->fd, NULL, NULL);
    assert_true(fd >= 0 && read(fd, request, sizeof request) > 0);
    assert_true(say(c, fd, c->text));
    while (c->again != NULL && say(c, fd, c->again))
        ;
    if (!c->stays)
        (void)shutdown(fd, SHUT_WR);
    while (read(fd, request, sizeof request) > 0)
        ;
    (void)close(fd);
    return NULL;
}

/* Sends a request to it. */
static void ask(collector *c)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    char url[64];
    pthread_t thread;
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(c->fd, (struct sockaddr *)&at, len), 0);
    assert_int_equal(listen(c->fd, 1), 0);
    assert_int_equal(getsockname(c->fd, (struct sockaddr *)&at, &len), 0);
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%u", ntohs(at.sin_port));
    open_post(url);
    assert_int_equal(pthread_create(&thread, NULL, answer_one, c), 0);
    hf_post_send(post, "{}", 2, &answer);
    hf_post_free(post);
    assert_int_equal(pthread_join(thread, NULL), 0);
    (void)close(c->fd);
}

static void a_retry_without_end_is_bounded(void **state)
{
    collector c = {.text = "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n"
                           "Retry-After: 9223372036854775807\r\n\r\n"};
    (void)state;
    ask(&c);
    assert_int_equal(answer.status, 503);
    assert_int_equal(answer.retry_after_ms, 3600000);
}

static void an_answer_in_pieces_is_put_together(void **state)
{
    collector c = {.text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                           "1\r\n{\r\n00000001;a=b\r\n}\r\n0\r\nX-Trailer: 1\r\n\r\n",
                   .stays = true};
    (void)state;
    ask(&c);
    assert_int_equal(answer.status, 200);
    assert_int_equal(answer.len, 2);
    assert_memory_equal(answer.body, "{}", 2);
}

/* Its status counts, and a processor has better things to do than to read it. */
static void of_an_answer_without_end_the_beginning_is_read(void **state)
{
    static const char *const heads[] = {
        "HTTP/1.1 200 OK\r\nContent-Length: 9000000000\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\n\r\n"};
    char piece[6 + 4096 + 3] = "1000\r\n"; /* a chunk */
    (void)state;
    memset(piece + 6, 'x', 4096);
    (void)snprintf(piece + 6 + 4096, 3, "\r\n");
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        collector c = {.text = heads[i], .again = piece};
        const uint64_t began = hf_test_fair_ms();
        ask(&c);
        assert_int_equal(answer.status, 200);
        assert_int_equal(answer.len, HF_POST_BODY_MAX);
        assert_true(hf_test_fair_ms() - began < LONG_MS / 6); /* 10 s without a bound */
        assert_true(c.sent < 64 << 20);
    }
}

/* A chunk that is none is no answer, and the spans are sent again. */
static void a_broken_answer_is_none(void **state)
{
    static const char *const broken[] = {
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "nonsense\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"};
    (void)state;
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        collector c = {.text = broken[i]};
        ask(&c);
        assert_int_equal(answer.status, 0);
        assert_string_not_equal(answer.why, "");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_retry_without_end_is_bounded),
        cmocka_unit_test(an_answer_in_pieces_is_put_together),
        cmocka_unit_test(of_an_answer_without_end_the_beginning_is_read),
        cmocka_unit_test(a_broken_answer_is_none),
        cmocka_unit_test(the_end_does_not_wait_for_a_look_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
