/* test_client_tls.c - a client and a real server by TLS, and servers that break it. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base.h"
#include "redis/server.h"
#include "tests/support/certs.h"
#include "tests/support/client_fixture.h"
#include "tests/support/redis_fixture.h"
#include "tests/support/replicas.h"
#include "tests/support/tls_peer.h"

enum { SOON_MS = 30000, MIB = 1 << 20 };
enum { LARGE_MS = 120000 }; /* with a sanitizer, on a busy machine */

static hf_fixture redis;

static int up(void **state)
{
    (void)state;
    hf_fixture_start(
        &redis,
        &(hf_fixture_options){.tls = true,
                              .tcp = true,
                              .args = {"--client-output-buffer-limit", "normal 0 0 0"}});
    return 0;
}

static int down(void **state)
{
    (void)state;
    hf_fixture_stop(&redis);
    return 0;
}

static void open_with(hf_client_fixture *fixture, const char *url, const hf_tls_opts *tls)
{
    hf_client_fixture_open_to(fixture, &(hf_server_opts){.url = url, .tls = tls});
}

static void open_trusting(hf_client_fixture *fixture, const char *url)
{
    open_with(fixture, url, &(hf_tls_opts){HF_TLS_OPTS_INIT, .ca = redis.ca});
}

/* The first event is a loss, for this reason. */
static void expect_loss(hf_client_fixture *fixture, hf_err err, const char *why)
{
    RUN_UNTIL(fixture, SOON_MS, fixture->ready + fixture->lost > 0);
    if (fixture->ready > 0 || fixture->err != err || strstr(fixture->detail, why) == NULL)
        fail_msg("expected %s '%s', found %s '%s'", hf_err_name(err), why,
                 hf_err_name(fixture->err), fixture->detail);
    hf_client_fixture_close(fixture);
}

/* ---- payloads ---- */

typedef struct got {
    const char *expected;
    size_t len;
    bool done, same;
} got;

static void on_got(const hf_answer *answer, void *arg)
{
    got *g = arg;
    hf_bytes bytes = hf_reply_bytes(answer->reply);
    g->same = answer->err == HF_OK && bytes.len == g->len &&
              memcmp(bytes.ptr, g->expected, g->len) == 0;
    g->done = true;
}

static void there_and_back(hf_client_fixture *fixture, const char *data, size_t len)
{
    const hf_bytes set[] = {{"SET", 3}, {"k", 1}, {data, len}};
    const hf_bytes get[] = {{"GET", 3}, {"k", 1}};
    hf_asked stored = {.answers = 0};
    got read = {.expected = data, .len = len};
    assert_int_equal(hf_request_send(fixture->client, &(hf_call){.args = set,
                                                                 .n_args = 3,
                                                                 .timeout_ms = LARGE_MS,
                                                                 .cb = hf_on_asked,
                                                                 .arg = &stored}),
                     HF_OK);
    assert_int_equal(hf_request_send(fixture->client, &(hf_call){.args = get,
                                                                 .n_args = 2,
                                                                 .timeout_ms = LARGE_MS,
                                                                 .cb = on_got,
                                                                 .arg = &read}),
                     HF_OK);
    RUN_UNTIL(fixture, LARGE_MS, read.done);
    assert_int_equal(stored.err, HF_OK);
    assert_true(read.same);
}

static void payloads_of_any_size_pass(void **state)
{
    (void)state;
    hf_client_fixture fixture;
    enum { LARGEST = 63 * MIB };
    char *data = malloc(LARGEST);
    assert_non_null(data);
    for (size_t i = 0; i < LARGEST; i++)
        data[i] = (char)(i * 31 + (i >> 13));
    open_trusting(&fixture, redis.tls_url);
    RUN_UNTIL(&fixture, SOON_MS, fixture.ready == 1);
    for (size_t size = (16 << 10) - 40; size <= (16 << 10) + 2; size++)
        there_and_back(&fixture, data, size);
    there_and_back(&fixture, data, 0);
    there_and_back(&fixture, data, MIB);
    there_and_back(&fixture, data, LARGEST);
    assert_int_equal(fixture.lost, 0);
    hf_client_fixture_close(&fixture);
    free(data);
}

/* ---- certificates ---- */

static void a_server_without_a_good_certificate_is_refused(void **state)
{
    (void)state;
    hf_client_fixture fixture;
    char *other = hf_certs_path(redis.dir, "stranger-ca.pem");
    open_with(&fixture, redis.tls_url, NULL);
    expect_loss(&fixture, HF_AUTH, "the server's certificate is refused: ");
    open_with(&fixture, redis.tls_url, &(hf_tls_opts){HF_TLS_OPTS_INIT, .ca = other});
    expect_loss(&fixture, HF_AUTH, "the server's certificate is refused: ");
    open_with(
        &fixture, redis.tls_url,
        &(hf_tls_opts){HF_TLS_OPTS_INIT, .ca = redis.ca, .server_name = "other.example"});
    expect_loss(&fixture, HF_AUTH, "it is not for `other.example`");
    open_with(&fixture, redis.tls_url,
              &(hf_tls_opts){HF_TLS_OPTS_INIT, .skip_verify = true});
    RUN_UNTIL(&fixture, SOON_MS, fixture.ready == 1);
    hf_client_fixture_close(&fixture);
    free(other);
}

static void a_server_that_wants_a_certificate_gets_one(void **state)
{
    (void)state;
    hf_client_fixture fixture;
    hf_fixture strict;
    hf_fixture_start(&strict, &(hf_fixture_options){.tls = true, .tls_clients = true});
    char *cert = hf_certs_path(strict.dir, "client.pem");
    char *key = hf_certs_path(strict.dir, "client.key");
    open_with(&fixture, strict.tls_url,
              &(hf_tls_opts){HF_TLS_OPTS_INIT, .ca = strict.ca});
    expect_loss(&fixture, HF_AUTH, "the server wants a client certificate");
    open_with(
        &fixture, strict.tls_url,
        &(hf_tls_opts){HF_TLS_OPTS_INIT, .ca = strict.ca, .cert = cert, .key = key});
    RUN_UNTIL(&fixture, SOON_MS, fixture.ready == 1);
    hf_client_fixture_close(&fixture);
    free(cert);
    free(key);
    hf_fixture_stop(&strict);
}

/* An authority that comes later is used without a restart. */
static void files_are_read_again_for_each_connection(void **state)
{
    (void)state;
    hf_client_fixture fixture;
    char *now = hf_certs_path(redis.dir, "now.pem");
    char *other = hf_certs_path(redis.dir, "stranger-ca.pem");
    assert_int_equal(symlink(other, now), 0);
    open_with(&fixture, redis.tls_url, &(hf_tls_opts){HF_TLS_OPTS_INIT, .ca = now});
    RUN_UNTIL(&fixture, SOON_MS, fixture.lost > 0);
    assert_int_equal(fixture.err, HF_AUTH);
    assert_int_equal(unlink(now), 0);
    unsigned lost = fixture.lost;
    RUN_UNTIL(&fixture, SOON_MS, fixture.lost > lost + 1);
    assert_int_equal(fixture.err, HF_CONFIG);
    assert_int_equal(symlink(redis.ca, now), 0);
    RUN_UNTIL(&fixture, SOON_MS, fixture.ready == 1);
    hf_client_fixture_close(&fixture);
    free(now);
    free(other);
}

/* To read the authorities of a system takes 20 ms: too long for each vain try. */
static void no_file_is_read_for_a_server_that_is_away(void **state)
{
    (void)state;
    hf_client_fixture fixture;
    char *ca = hf_certs_path(redis.dir, "for-a-while.pem");
    assert_int_equal(symlink(redis.ca, ca), 0);
    open_with(&fixture, "rediss://127.0.0.1:1",
              &(hf_tls_opts){HF_TLS_OPTS_INIT, .ca = ca});
    RUN_UNTIL(&fixture, SOON_MS, fixture.lost > 0);
    assert_int_equal(unlink(ca), 0);
    unsigned lost = fixture.lost;
    RUN_UNTIL(&fixture, SOON_MS, fixture.lost > lost + 1);
    assert_int_equal(fixture.err, HF_CONN);
    assert_non_null(strstr(fixture.detail, "refused"));
    hf_client_fixture_close(&fixture);
    free(ca);
}

static void bad_options_are_refused_before_anything_starts(void **state)
{
    (void)state;
    const hf_tls_opts gone = {HF_TLS_OPTS_INIT, .ca = "/nowhere/ca.pem"};
    const struct {
        const char *url;
        hf_err err;
        const char *why;
    } cases[] = {{"rediss://localhost", HF_CONFIG, "/nowhere/ca.pem"},
                 {"redis://localhost", HF_CONFIG, "rediss://"},
                 {"unix:///s", HF_CONFIG, "rediss://"}};
    for (size_t i = 0; i < HF_COUNT(cases); i++) {
        char detail[HF_DETAIL_SIZE] = "";
        hf_server *server = NULL;
        const hf_server_opts opts = {HF_SERVER_OPTS_INIT, .url = cases[i].url,
                                     .tls = &gone};
        assert_int_equal(hf_server_open(&server, &opts, detail), cases[i].err);
        assert_non_null(strstr(detail, cases[i].why));
        assert_null(server);
    }
}

/* ---- the wrong kind of port ---- */

static void a_plain_client_is_told_that_the_port_speaks_tls(void **state)
{
    (void)state;
    hf_client_fixture fixture;
    char url[64];
    (void)snprintf(url, sizeof url, "redis://127.0.0.1:%u", (unsigned)redis.tls_port);
    hf_client_fixture_open(&fixture, url, NULL);
    expect_loss(&fixture, HF_CONN, "rediss://");
}

static void a_plain_server_is_told_by_the_deadline_at_the_latest(void **state)
{
    (void)state;
    hf_client_fixture fixture;
    char url[64];
    (void)snprintf(url, sizeof url, "rediss://127.0.0.1:%u", (unsigned)redis.port);
    hf_client_fixture_open_to(&fixture,
                              &(hf_server_opts){.url = url, .connect_timeout_ms = 300});
    expect_loss(&fixture, HF_CONN, "speak TLS");
}

/* ---- a server by TLS that misbehaves ---- */

typedef enum rogue_kind {
    SILENT,
    CUTS_HANDSHAKE,
    CUTS_RECORD,
    NOISY,
    GOODBYE
} rogue_kind;

typedef struct rogue {
    rogue_kind kind;
    int listener;
    pthread_t thread;
    char url[48];
} rogue;

static void send_all(int fd, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = send(fd, data, len, MSG_NOSIGNAL);
        if (n <= 0)
            return;
        data += n;
        len -= (size_t)n;
    }
}

static void send_sealed(int fd, hf_tls_peer *peer, size_t most)
{
    char sealed[1 << 14];
    size_t n =
        hf_tls_peer_sealed(peer, sealed, most < sizeof sealed ? most : sizeof sealed);
    send_all(fd, sealed, n);
}

/* The answer to ONE, and what it does behind it. False: it hangs up. */
static bool answer_one(rogue_kind kind, int fd, hf_tls_peer *peer)
{
    char bytes[4096];
    hf_tls_peer_write(peer, "+one\r\n", 6);
    if (kind == CUTS_RECORD) {
        send_sealed(fd, peer, 9);
        return false;
    }
    if (kind == GOODBYE)
        (void)SSL_shutdown(peer->ssl);
    size_t n = hf_tls_peer_sealed(peer, bytes, sizeof bytes / 2);
    if (kind == NOISY) {
        memset(bytes + n, 'x', 1000);
        n += 1000;
    }
    send_all(fd, bytes, n);
    return true;
}

static void serve(rogue_kind kind, int fd)
{
    static const char greeting[] = ":7\r\n$24\r\nredis_version:7.0.15\r\nx:\r\n";
    hf_tls_peer peer;
    char bytes[1 << 14];
    ssize_t n;
    hf_tls_peer_start(&peer, &(hf_tls_peer_opts){.dir = redis.dir});
    bool going = true;
    while (going && (n = recv(fd, bytes, sizeof bytes - 1, 0)) > 0) {
        if (kind == SILENT)
            continue;
        hf_tls_peer_feed(&peer, bytes, (size_t)n);
        size_t len = hf_tls_peer_read(&peer, bytes, sizeof bytes - 1);
        bytes[len] = '\0';
        if (kind == CUTS_HANDSHAKE) {
            send_sealed(fd, &peer, 50);
            break;
        }
        if (strstr(bytes, "INFO") != NULL)
            hf_tls_peer_write(&peer, greeting, sizeof greeting - 1);
        send_sealed(fd, &peer, SIZE_MAX);
        if (strstr(bytes, "ONE") != NULL)
            going = answer_one(kind, fd, &peer);
    }
    hf_tls_peer_stop(&peer);
}

static void *rogue_main(void *arg)
{
    rogue *r = arg;
    int fd;
    while ((fd = accept(r->listener, NULL, NULL)) >= 0) {
        serve(r->kind, fd);
        (void)close(fd);
    }
    return NULL;
}

static void rogue_start(rogue *r, rogue_kind kind)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    *r = (rogue){.kind = kind, .listener = socket(AF_INET, SOCK_STREAM, 0)};
    assert_true(r->listener >= 0);
    assert_int_equal(bind(r->listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(getsockname(r->listener, (struct sockaddr *)&address, &size), 0);
    assert_int_equal(listen(r->listener, 16), 0);
    (void)snprintf(r->url, sizeof r->url, "rediss://127.0.0.1:%u",
                   (unsigned)ntohs(address.sin_port));
    assert_int_equal(pthread_create(&r->thread, NULL, rogue_main, r), 0);
}

/* The fixture is closed before, so no connection is left. */
static void rogue_stop(rogue *r)
{
    (void)shutdown(r->listener, SHUT_RDWR);
    (void)pthread_join(r->thread, NULL);
    (void)close(r->listener);
}

static void a_silent_server_is_left_by_the_deadline(void **state)
{
    (void)state;
    hf_client_fixture fixture;
    rogue r;
    rogue_start(&r, SILENT);
    hf_client_fixture_open_to(&fixture,
                              &(hf_server_opts){.url = r.url, .connect_timeout_ms = 300});
    expect_loss(&fixture, HF_CONN, "no TLS handshake within the time");
    rogue_stop(&r);
}

static void an_end_inside_the_handshake_is_told(void **state)
{
    (void)state;
    hf_client_fixture fixture;
    rogue r;
    rogue_start(&r, CUTS_HANDSHAKE);
    open_trusting(&fixture, r.url);
    expect_loss(&fixture, HF_CONN, "in the TLS handshake");
    rogue_stop(&r);
}

static void an_end_inside_a_record_is_no_answer(void **state)
{
    (void)state;
    hf_client_fixture fixture;
    hf_asked asked = {.answers = 0};
    rogue r;
    rogue_start(&r, CUTS_RECORD);
    open_trusting(&fixture, r.url);
    RUN_UNTIL(&fixture, SOON_MS, fixture.ready == 1);
    assert_int_equal(hf_ask(&fixture, &asked, SOON_MS, "ONE"), HF_OK);
    RUN_UNTIL(&fixture, SOON_MS, asked.answers == 1);
    assert_int_equal(asked.err, HF_UNSURE);
    assert_int_equal(fixture.err, HF_CONN);
    hf_client_fixture_close(&fixture);
    rogue_stop(&r);
}

typedef struct again {
    hf_client_fixture *fixture;
    hf_asked more;
    hf_err err;
} again;

/* From inside the answer, more than a socket's buffer, and at once. */
static void ask_again(hf_asked *asked)
{
    static char large[1 << 20];
    again *a = asked->data;
    const hf_bytes words[] = {{"TWO", 3}, {large, sizeof large}};
    a->err = hf_request_send(a->fixture->client, &(hf_call){.args = words,
                                                            .n_args = 2,
                                                            .timeout_ms = SOON_MS,
                                                            .cb = hf_on_asked,
                                                            .arg = &a->more});
    hf_client_flush(a->fixture->client);
}

static void a_write_after_tls_has_failed_ends_as_a_lost_connection(void **state)
{
    static const rogue_kind kinds[] = {NOISY, GOODBYE};
    (void)state;
    for (size_t i = 0; i < HF_COUNT(kinds); i++) {
        hf_client_fixture fixture;
        again a = {.fixture = &fixture};
        hf_asked asked = {.then = ask_again, .data = &a};
        rogue r;
        rogue_start(&r, kinds[i]);
        open_trusting(&fixture, r.url);
        RUN_UNTIL(&fixture, SOON_MS, fixture.ready == 1);
        assert_int_equal(hf_ask(&fixture, &asked, SOON_MS, "ONE"), HF_OK);
        RUN_UNTIL(&fixture, SOON_MS, asked.answers == 1 && a.more.answers == 1);
        assert_int_equal(asked.err, HF_OK);
        assert_string_equal(asked.text, "one");
        assert_int_equal(a.err, HF_OK);
        assert_int_equal(a.more.err, HF_UNSURE);
        assert_int_equal(fixture.err, HF_CONN);
        hf_client_fixture_close(&fixture);
        rogue_stop(&r);
    }
}

/* ---- Sentinels ---- */

static void sentinels_are_asked_by_tls_too(void **state)
{
    (void)state;
    hf_client_fixture fixture;
    hf_fixture sentinel;
    char url[HF_SENTINELS_URL_SIZE], *cert = hf_certs_path(redis.dir, "server.pem"),
                                     *key = hf_certs_path(redis.dir, "server.key");
    hf_sentinel_fixture_start(
        &sentinel,
        &(hf_fixture_options){.tls = true,
                              .args = {"--tls-cert-file", cert, "--tls-key-file", key}},
        redis.tls_port);
    (void)snprintf(url, sizeof url, "rediss+sentinel://127.0.0.1:%u/m",
                   (unsigned)sentinel.tls_port);
    open_with(&fixture, url, &(hf_tls_opts){HF_TLS_OPTS_INIT, .ca = sentinel.ca});
    expect_loss(&fixture, HF_AUTH, "Sentinel 127.0.0.1:");
    open_trusting(&fixture, url);
    RUN_UNTIL(&fixture, SOON_MS, fixture.ready == 1);
    hf_client_fixture_close(&fixture);
    hf_fixture_stop(&sentinel);
    free(cert);
    free(key);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(payloads_of_any_size_pass),
        cmocka_unit_test(a_server_without_a_good_certificate_is_refused),
        cmocka_unit_test(a_server_that_wants_a_certificate_gets_one),
        cmocka_unit_test(files_are_read_again_for_each_connection),
        cmocka_unit_test(no_file_is_read_for_a_server_that_is_away),
        cmocka_unit_test(bad_options_are_refused_before_anything_starts),
        cmocka_unit_test(a_plain_client_is_told_that_the_port_speaks_tls),
        cmocka_unit_test(a_plain_server_is_told_by_the_deadline_at_the_latest),
        cmocka_unit_test(a_silent_server_is_left_by_the_deadline),
        cmocka_unit_test(an_end_inside_the_handshake_is_told),
        cmocka_unit_test(an_end_inside_a_record_is_no_answer),
        cmocka_unit_test(a_write_after_tls_has_failed_ends_as_a_lost_connection),
        cmocka_unit_test(sentinels_are_asked_by_tls_too),
    };
    return cmocka_run_group_tests(tests, up, down);
}
