/* test_client_calls.c - requests: each is answered exactly once, even if the connection,
 * the server or the client fails. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/random.h"
#include "redis/flight.h"
#include "redis/plain.h"
#include "tests/support/client_fixture.h"
#include "tests/support/eventually.h"
#include "tests/support/proxy.h"
#include "tests/support/redis_fixture.h"
#include "tests/support/seed.h"

enum { SOON_MS = 30000, MANY = 500, LARGE = 64 << 20 };
enum { LARGE_MS = 120000 }; /* with a sanitizer, on a busy machine */

static hf_fixture redis;

/* The digests are those of these very bytes. */
static const hf_script echo = {.name = "test/echo",
                               .text = (const unsigned char *)"return {KEYS[1], ARGV[1]}",
                               .len = 25,
                               .sha1 = "d006f1a90249474274c76f5be725b8f5804a346b",
                               .nkeys = 1,
                               .nargs = 1};

static hf_err call_echo(hf_client_fixture *fixture, hf_asked *asked, const char *key,
                        const char *arg)
{
    const hf_bytes keys[] = {{key, strlen(key)}}, args[] = {{arg, strlen(arg)}};
    asked->answers = 0;
    const hf_call call = {.script = &echo,
                          .keys = keys,
                          .n_keys = 1,
                          .args = args,
                          .n_args = 1,
                          .cb = hf_on_asked,
                          .arg = asked};
    return hf_request_send(fixture->client, &call);
}

/* How many of them have been answered; none may have been twice. */
static size_t answered(const hf_asked *asked, size_t n)
{
    size_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += asked[i].answers;
    return sum;
}

/* ---- answers ---- */

static void answers_come_in_the_order_of_the_requests(void **state)
{
    (void)state;
    hf_client_fixture fixture;
    static hf_asked asked[MANY];
    memset(asked, 0, sizeof asked);
    hf_client_fixture_connect(&fixture, redis.url);
    uint64_t before = hf_boot_ns();
    for (size_t i = 0; i < MANY; i++)
        assert_int_equal(hf_ask(&fixture, &asked[i], 0, "INCR n"), HF_OK);
    uint64_t after = hf_boot_ns();
    RUN_UNTIL(&fixture, SOON_MS, answered(asked, MANY) == MANY);
    for (size_t i = 0; i < MANY; i++) {
        assert_int_equal(asked[i].err, HF_OK);
        assert_int_equal(asked[i].number, i + 1);
        assert_true(asked[i].sent_ns >= before && asked[i].sent_ns <= after);
    }
    hf_client_fixture_close(&fixture);
}

static void any_bytes_go_there_and_back(void **state)
{
    (void)state;
    hf_client_fixture fixture;
    hf_asked asked = {.answers = 0};
    hf_client_fixture_connect(&fixture, redis.url);
    const hf_bytes set[] = {{"SET", 3}, {"k\r\n\0*", 5}, {"", 0}};
    const hf_call call = {.args = set, .n_args = 3, .cb = hf_on_asked, .arg = &asked};
    assert_int_equal(hf_request_send(fixture.client, &call), HF_OK);
    RUN_UNTIL(&fixture, SOON_MS, asked.answers == 1);
    assert_string_equal(asked.text, "OK");
    assert_int_equal(hf_fixture_number(&redis, "STRLEN %b", "k\r\n\0*", (size_t)5), 0);
    assert_int_equal(hf_fixture_number(&redis, "EXISTS %b", "k\r\n\0*", (size_t)5), 1);
    hf_client_fixture_close(&fixture);
}

/* Redis before 7.0 counts all subcommands of SCRIPT as one command. */
static long long script_calls(void)
{
    return hf_fixture_calls(&redis, "script|load") + hf_fixture_calls(&redis, "script");
}

static void an_unknown_script_is_loaded_by_the_time_this_is_told(void **state)
{
    (void)state;
    hf_client_fixture fixture;
    hf_asked asked[20] = {{.answers = 0}};
    hf_client_fixture_connect(&fixture, redis.url);
    for (int round = 0; round < 2; round++) {
        long long loads = script_calls();
        for (size_t i = 0; i < HF_COUNT(asked); i++)
            assert_int_equal(call_echo(&fixture, &asked[i], "k", "v"), HF_OK);
        RUN_UNTIL(&fixture, SOON_MS, answered(asked, 20) == 20);
        for (size_t i = 0; i < HF_COUNT(asked); i++)
            assert_int_equal(asked[i].err, HF_NOSCRIPT);
        assert_int_equal(call_echo(&fixture, &asked[0], "k", "v"), HF_OK);
        RUN_UNTIL(&fixture, SOON_MS, asked[0].answers == 1);
        assert_int_equal(asked[0].err, HF_OK);
        /* Twenty misses in a row are repaired by one load. */
        assert_int_equal(script_calls() - loads, 1);
        hf_fixture_command(&redis, "SCRIPT FLUSH");
    }
    hf_client_fixture_close(&fixture);
}

static void an_error_has_its_class_and_redis_s_own_words(void **state)
{
    (void)state;
    hf_client_fixture fixture;
    hf_asked asked = {.answers = 0};
    hf_client_fixture_connect(&fixture, redis.url);
    hf_fixture_command(&redis, "SET text x");
    assert_memory_equal(hf_ask_now(&fixture, &asked, "LPUSH text 1"), "WRONGTYPE ", 10);
    assert_int_equal(asked.err, HF_REDIS);
    hf_fixture_command(&redis, "CONFIG SET maxmemory 1");
    assert_memory_equal(hf_ask_now(&fixture, &asked, "SET a b"), "OOM ", 4);
    assert_int_equal(asked.err, HF_OOM);
    hf_fixture_command(&redis, "CONFIG SET maxmemory 0");
    assert_string_equal(hf_ask_now(&fixture, &asked, "SET a b"), "OK");
    assert_string_equal(asked.detail, "");
    assert_int_equal(fixture.lost, 0); /* none of this ends the connection */
    hf_client_fixture_close(&fixture);
}

static void ask_in_vain(hf_asked *asked)
{
    const hf_bytes words[] = {{"PING", 4}};
    hf_client_fixture *r = asked->data;
    const hf_call call = {.args = words, .n_args = 1, .cb = hf_on_asked, .arg = asked};
    assert_int_equal(hf_request_send(r->client, &call), HF_CONN);
}

/* Nothing more is taken, and all that was sent is answered as it was. */
static void readonly_ends_the_connection_behind_the_answers(void **state)
{
    (void)state;
    enum { ASKED = 5 };
    static const char *const words[ASKED] = {"GET a", "SET a c", "GET a", "SET a d",
                                             "GET a"};
    hf_client_fixture fixture;
    hf_asked asked[ASKED] = {{.answers = 0}};
    hf_client_fixture_connect(&fixture, redis.url);
    assert_string_equal(hf_fixture_command(&redis, "SET a b"), "OK");
    hf_fixture_command(&redis, "REPLICAOF 127.0.0.1 1");
    asked[1].then = ask_in_vain;
    asked[1].data = &fixture;
    for (size_t i = 0; i < ASKED; i++)
        assert_int_equal(hf_ask(&fixture, &asked[i], 0, words[i]), HF_OK);
    RUN_UNTIL(&fixture, SOON_MS, fixture.lost == 1);
    assert_int_equal(fixture.err, HF_READONLY);
    assert_non_null(strstr(fixture.detail, "READONLY"));
    for (size_t i = 0; i < ASKED; i++) {
        assert_int_equal(asked[i].answers, 1);
        assert_int_equal(asked[i].err, i % 2 == 0 ? HF_OK : HF_READONLY);
    }
    assert_string_equal(asked[4].text, "b");
    hf_fixture_command(&redis, "REPLICAOF NO ONE");
    RUN_UNTIL(&fixture, SOON_MS, fixture.ready == 2);
    assert_string_equal(hf_ask_now(&fixture, &asked[0], "SET a e"), "OK");
    hf_client_fixture_close(&fixture);
}

/* Redis answers with an error, and hangs up. */
static void waiting_ends_when_the_primary_becomes_a_replica(void **state)
{
    (void)state;
    hf_client_fixture fixture;
    hf_asked asked = {.answers = 0};
    hf_client_fixture_connect(&fixture, redis.url);
    assert_int_equal(hf_ask(&fixture, &asked, SOON_MS, "BLPOP nothing 0"), HF_OK);
    RUN_UNTIL(&fixture, SOON_MS,
              strstr(hf_fixture_command(&redis, "INFO clients"), "blocked_clients:1"));
    hf_fixture_command(&redis, "REPLICAOF 127.0.0.1 1");
    RUN_UNTIL(&fixture, SOON_MS, asked.answers == 1 && fixture.lost > 0);
    assert_int_equal(asked.err, HF_READONLY);
    assert_memory_equal(asked.detail, "UNBLOCKED ", 10);
    hf_client_fixture_close(&fixture);
}

static long long blocked_at(hf_fixture *server)
{
    const char *at =
        strstr(hf_fixture_command(server, "INFO clients"), "blocked_clients:");
    return at == NULL ? -1 : strtoll(strchr(at, ':') + 1, NULL, 10);
}

/* Another server, or the same one after a restart, counts its clients from 1 again. */
static void a_stranger_with_the_id_of_one_that_waits_is_not_unblocked(void **state)
{
    enum { TRIES = 1000 };
    (void)state;
    hf_fixture after;
    hf_client_fixture fixture, waits, stranger;
    hf_asked asked = {.answers = 0}, waited = {.answers = 0}, other = {.answers = 0};
    hf_fixture_start(&after, NULL);
    hf_client_fixture_connect(&waits, redis.url);
    hf_client_fixture_connect(&fixture, after.url);
    int64_t id = hf_client_server(waits.client)->client_id;
    hf_client_fixture_connect(&stranger, after.url);
    for (int i = 0; hf_client_server(stranger.client)->client_id != id; i++) {
        bool before = hf_client_server(stranger.client)->client_id < id;
        hf_client_fixture *late = before ? &stranger : &waits; /* its next id is higher */
        const char *url = before ? after.url : redis.url;
        assert_true(i < TRIES);
        hf_client_fixture_close(late);
        hf_client_fixture_connect(late, url);
        id = hf_client_server(waits.client)->client_id;
    }
    assert_int_equal(hf_ask(&waits, &waited, SOON_MS, "BLPOP nothing 0"), HF_OK);
    assert_int_equal(hf_ask(&stranger, &other, SOON_MS, "BLPOP nothing 0"), HF_OK);
    RUN_UNTIL(&waits, SOON_MS, blocked_at(&redis) == 1);
    RUN_UNTIL(&stranger, SOON_MS, blocked_at(&after) == 1);
    hf_err err = hf_plain_unblock(fixture.client, waits.client, hf_on_asked, &asked);
    if (err == HF_OK)
        RUN_UNTIL(&fixture, SOON_MS, asked.answers == 1);
    assert_int_equal(blocked_at(&after), 1);
    assert_int_equal(err, HF_CONN);
    hf_client_fixture_close(&stranger);
    hf_client_fixture_close(&waits);
    hf_client_fixture_close(&fixture);
    hf_fixture_stop(&after);
}

static void a_large_request_and_a_large_answer_pass(void **state)
{
    (void)state;
    hf_client_fixture fixture;
    hf_asked set = {.answers = 0}, get = {.answers = 0}, ping = {.answers = 0};
    char *data = malloc(LARGE);
    assert_non_null(data);
    memset(data, 'x', LARGE);
    hf_client_fixture_connect(&fixture, redis.url);
    const hf_bytes words[] = {{"SET", 3}, {"large", 5}, {data, LARGE}};
    const hf_call call = {.args = words,
                          .n_args = 3,
                          .timeout_ms = LARGE_MS,
                          .cb = hf_on_asked,
                          .arg = &set};
    assert_int_equal(hf_request_send(fixture.client, &call), HF_OK);
    free(data); /* it was copied */
    assert_int_equal(hf_ask(&fixture, &get, LARGE_MS, "GET large"), HF_OK);
    assert_int_equal(hf_ask(&fixture, &ping, LARGE_MS, "PING"), HF_OK);
    RUN_UNTIL(&fixture, LARGE_MS, ping.answers == 1);
    assert_string_equal(set.text, "OK");
    assert_int_equal(get.err, HF_OK);
    assert_int_equal(strlen(get.text), sizeof get.text - 1);
    assert_string_equal(ping.text, "PONG");
    assert_int_equal(hf_fixture_number(&redis, "STRLEN large"), LARGE);
    hf_client_fixture_close(&fixture);
}

static void a_value_that_cannot_change_is_refused_and_the_rest_applies(void **state)
{
    (void)state;
    hf_client_fixture fixture;
    static hf_asked asked[HF_FLIGHT_MAX + 8];
    hf_asked too_big = {.answers = 0};
    hf_client_fixture_connect(&fixture, redis.url);
    /* It is refused before a byte of it is read. */
    const hf_bytes words[] = {{"SET", 3}, {"k", 1}, {"", (size_t)1 << 40}};
    const hf_call call = {.args = words, .n_args = 3, .cb = hf_on_asked, .arg = &too_big};
    assert_int_equal(hf_request_send(fixture.client, &call), HF_TOOBIG);
    size_t n = 0;
    while (n < HF_COUNT(asked) && hf_ask(&fixture, &asked[n], 30000, "PING") == HF_OK)
        n++;
    assert_in_range(n, 1000, HF_FLIGHT_MAX);
    assert_int_equal(hf_ask(&fixture, &too_big, 0, "PING"), HF_NOMEM);
    RUN_UNTIL(&fixture, 30000, answered(asked, n) == n);
    for (size_t i = 0; i < n; i++)
        assert_string_equal(asked[i].text, "PONG");
    assert_int_equal(too_big.answers, 0);
    assert_string_equal(hf_ask_now(&fixture, &too_big, "PING"), "PONG");
    hf_client_fixture_close(&fixture);
}

/* ---- deadlines ---- */

static void a_server_that_stops_leaves_requests_unsure_in_time(void **state)
{
    (void)state;
    hf_client_fixture fixture;
    hf_asked asked[3] = {{.answers = 0}};
    hf_client_fixture_connect(&fixture, redis.url);
    hf_fixture_signal(&redis, SIGSTOP);
    uint64_t start = hf_test_now_ms(), fair = hf_test_fair_ms();
    assert_int_equal(hf_ask(&fixture, &asked[0], 60000, "INCR n"), HF_OK);
    assert_int_equal(hf_ask(&fixture, &asked[1], 150, "INCR n"), HF_OK);
    assert_int_equal(hf_ask(&fixture, &asked[2], 10000, "INCR n"), HF_OK);
    /* The earliest deadline ends the connection, and so all of them. */
    RUN_UNTIL(&fixture, SOON_MS, answered(asked, 3) == 3);
    assert_true(hf_test_now_ms() - start >= 149);
    assert_true(hf_test_fair_ms() - fair < 5000); /* it was not the next one */
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(asked[i].err, HF_UNSURE);
    assert_non_null(strstr(asked[0].detail, "no answer"));
    RUN_UNTIL(&fixture, SOON_MS, fixture.lost >= 1);
    assert_int_equal(fixture.err, HF_CONN);
    hf_fixture_signal(&redis, SIGCONT);
    RUN_UNTIL(&fixture, SOON_MS, fixture.ready == 2);
    assert_string_equal(hf_ask_now(&fixture, &asked[0], "PING"), "PONG");
    hf_client_fixture_close(&fixture);
}

static void answers_put_a_deadline_off_but_not_that_of_another(void **state)
{
    enum { ONE_MS = 3000 }; /* a busy machine answers sooner */
    (void)state;
    hf_client_fixture fixture;
    hf_asked asked = {.answers = 0}, blocked = {.answers = 0};
    hf_client_fixture_connect(&fixture, redis.url);
    /* One after the other, for longer than the deadline of each. */
    uint64_t until = hf_test_now_ms() + ONE_MS * 4 / 3;
    while (hf_test_now_ms() < until) {
        assert_int_equal(hf_ask(&fixture, &asked, ONE_MS, "PING"), HF_OK);
        RUN_UNTIL(&fixture, SOON_MS, asked.answers == 1);
        assert_int_equal(asked.err, HF_OK);
    }
    assert_int_equal(fixture.lost, 0);
    /* A blocking request has its own, long deadline. */
    assert_int_equal(hf_ask(&fixture, &blocked, SOON_MS, "BZPOPMIN none 0.3"), HF_OK);
    RUN_UNTIL(&fixture, SOON_MS, blocked.answers == 1);
    assert_int_equal(blocked.err, HF_OK);
    assert_int_equal(fixture.lost, 0);
    hf_client_fixture_close(&fixture);
}

static void a_process_that_was_stopped_finds_the_answer_that_has_come(void **state)
{
    (void)state;
    hf_client_fixture fixture;
    hf_asked asked = {.answers = 0};
    hf_client_fixture_connect(&fixture, redis.url);
    hf_fixture_signal(&redis, SIGSTOP);
    assert_int_equal(hf_ask(&fixture, &asked, 100, "PING"), HF_OK);
    uv_run(&fixture.loop, UV_RUN_NOWAIT); /* it is sent */
    assert_int_equal(asked.answers, 0);
    hf_fixture_signal(&redis, SIGCONT);
    for (int i = 0; i < 2; i++) /* when the second comes, that of the client is there */
        assert_string_equal(hf_fixture_command(&redis, "PING"), "PONG");
    hf_test_pause_ms(250); /* as if stopped: the loop does not turn */
    RUN_UNTIL(&fixture, SOON_MS, asked.answers == 1);
    assert_int_equal(asked.err, HF_OK);
    hf_client_fixture_close(&fixture);
}

/* ---- ends ---- */

static void closing_answers_what_is_in_flight(void **state)
{
    (void)state;
    for (int turns = 0; turns < 3; turns++) {
        hf_client_fixture fixture;
        hf_asked asked[10] = {{.answers = 0}};
        hf_client_fixture_connect(&fixture, redis.url);
        for (size_t i = 0; i < HF_COUNT(asked); i++)
            assert_int_equal(hf_ask(&fixture, &asked[i], 60000, "BLPOP none 0"), HF_OK);
        for (int i = 0; i < turns; i++)
            uv_run(&fixture.loop, UV_RUN_NOWAIT);
        hf_client_close(fixture.client, hf_client_fixture_on_closed, &fixture);
        fixture.client = NULL;
        assert_int_equal(answered(asked, 10), 0); /* not from inside the call */
        RUN_UNTIL(&fixture, SOON_MS, fixture.closed);
        for (size_t i = 0; i < HF_COUNT(asked); i++) {
            assert_int_equal(asked[i].answers, 1);
            assert_int_equal(asked[i].err, HF_UNSURE);
        }
        assert_int_equal(fixture.lost, 0);
        hf_client_fixture_close(&fixture);
    }
}

static void close_inside(hf_asked *asked)
{
    hf_client_fixture *fixture = asked->data;
    if (fixture->client != NULL)
        hf_client_close(fixture->client, hf_client_fixture_on_closed, fixture);
    fixture->client = NULL;
}

static void reset_inside(hf_asked *asked)
{
    hf_client_fixture *fixture = asked->data;
    hf_client_reset(fixture->client);
    hf_client_reset(fixture->client); /* once more changes nothing */
    assert_false(hf_client_ready(fixture->client));
}

static void a_client_may_be_closed_inside_an_answer(void **state)
{
    (void)state;
    for (size_t which = 0; which < 10; which++) {
        hf_client_fixture fixture;
        hf_asked asked[10] = {{.answers = 0}};
        hf_client_fixture_connect(&fixture, redis.url);
        for (size_t i = 0; i < HF_COUNT(asked); i++) {
            asked[i].data = &fixture;
            asked[i].then = i == which ? close_inside : NULL;
            assert_int_equal(hf_ask(&fixture, &asked[i], 0, "PING"), HF_OK);
        }
        RUN_UNTIL(&fixture, SOON_MS, fixture.closed);
        for (size_t i = 0; i < HF_COUNT(asked); i++) {
            assert_int_equal(asked[i].answers, 1);
            assert_int_equal(asked[i].err, i <= which ? HF_OK : HF_UNSURE);
        }
        hf_client_fixture_close(&fixture);
    }
}

static void a_client_may_be_closed_inside_the_answers_of_a_loss(void **state)
{
    (void)state;
    hf_client_fixture fixture;
    hf_asked asked[10] = {{.answers = 0}};
    hf_client_fixture_connect(&fixture, redis.url);
    for (size_t i = 0; i < HF_COUNT(asked); i++) {
        asked[i].data = &fixture;
        asked[i].then = close_inside;
        assert_int_equal(hf_ask(&fixture, &asked[i], 60000, "BLPOP none 0"), HF_OK);
    }
    hf_client_reset(fixture.client);
    RUN_UNTIL(&fixture, SOON_MS, fixture.closed);
    assert_int_equal(answered(asked, 10), 10);
    assert_int_equal(fixture.lost, 0); /* after a close there are no events */
    hf_client_fixture_close(&fixture);
}

static void a_client_may_be_reset_inside_an_answer(void **state)
{
    (void)state;
    hf_client_fixture fixture;
    hf_asked asked[10] = {{.answers = 0}};
    hf_client_fixture_connect(&fixture, redis.url);
    for (size_t i = 0; i < HF_COUNT(asked); i++) {
        asked[i].data = &fixture;
        asked[i].then = i == 4 ? reset_inside : NULL;
        assert_int_equal(hf_ask(&fixture, &asked[i], 0, "PING"), HF_OK);
    }
    RUN_UNTIL(&fixture, SOON_MS, fixture.ready == 2);
    assert_int_equal(fixture.lost, 1);
    for (size_t i = 0; i < HF_COUNT(asked); i++) {
        assert_int_equal(asked[i].answers, 1);
        assert_int_equal(asked[i].err, i <= 4 ? HF_OK : HF_UNSURE);
    }
    asked[0].then = NULL;
    assert_string_equal(hf_ask_now(&fixture, &asked[0], "PING"), "PONG");
    hf_client_fixture_close(&fixture);
}

static void what_had_not_left_before_a_reset_never_leaves(void **state)
{
    (void)state;
    hf_client_fixture fixture;
    hf_asked asked[3] = {{.answers = 0}};
    hf_client_fixture_connect(&fixture, redis.url);
    for (size_t i = 0; i < HF_COUNT(asked); i++)
        assert_int_equal(hf_ask(&fixture, &asked[i], 0, "INCR n"), HF_OK);
    hf_client_reset(fixture.client);
    assert_int_equal(answered(asked, 3), 0); /* not from inside the call */
    RUN_UNTIL(&fixture, SOON_MS, fixture.ready == 2);
    for (size_t i = 0; i < HF_COUNT(asked); i++)
        assert_int_equal(asked[i].err, HF_UNSURE);
    assert_string_equal(hf_ask_now(&fixture, &asked[0], "PING"), "PONG");
    assert_string_equal(hf_fixture_command(&redis, "GET n"), "(nil)");
    assert_int_equal(fixture.lost, 1);
    hf_client_fixture_close(&fixture);
}

static void ask_again(hf_asked *asked)
{
    hf_client_fixture *fixture = asked->data;
    asked->then = NULL;
    assert_int_equal(hf_ask(fixture, asked, 0, "INCR n"), HF_OK);
}

static void an_answer_may_ask_again(void **state)
{
    (void)state;
    hf_client_fixture fixture;
    hf_asked asked = {.then = ask_again, .data = &fixture};
    hf_client_fixture_connect(&fixture, redis.url);
    assert_int_equal(hf_ask(&fixture, &asked, 0, "INCR n"), HF_OK);
    RUN_UNTIL(&fixture, SOON_MS, asked.answers == 1 && asked.number == 2);
    hf_client_fixture_close(&fixture);
}

/* ---- connections that are cut ---- */

static void every_request_is_answered_once_while_connections_are_cut(void **state)
{
    (void)state;
    hf_rng rng = {hf_test_seed()};
    hf_proxy proxy;
    hf_client_fixture fixture;
    static hf_asked asked[20000];
    memset(asked, 0, sizeof asked);
    hf_proxy_start(&proxy, redis.socket);
    hf_client_fixture_connect(&fixture, proxy.url);
    enum { OPEN_MAX = 200 }; /* at once, or one cut is before all of them */
    size_t n = 0, ended = 0, well = 0;
    uint64_t least = hf_test_now_ms() + 1500, until = hf_test_fair_ms() + SOON_MS;
    while ((well <= 100 || well == ended || hf_proxy_cuts(&proxy) <= 3
                ? hf_test_fair_ms() < until
                : hf_test_now_ms() < least) &&
           n < HF_COUNT(asked)) {
        for (; ended < n && asked[ended].answers > 0; ended++)
            well += asked[ended].err == HF_OK ? 1 : 0;
        if (hf_rng_next(&rng) % 200 == 0)
            hf_proxy_cut_after(
                &proxy, hf_rng_next(&rng) % 2 == 0 ? PROXY_REQUESTS : PROXY_ANSWERS,
                hf_rng_next(&rng) % 3000);
        for (uint64_t i = hf_rng_next(&rng) % 20;
             i > 0 && n < HF_COUNT(asked) && n - ended < OPEN_MAX; i--)
            if (hf_client_ready(fixture.client) &&
                hf_ask(&fixture, &asked[n], 500, "INCR n") == HF_OK)
                n++;
        if (hf_rng_next(&rng) % 500 == 0)
            hf_client_reset(fixture.client);
        /* Else a machine that gives the server no time would see nothing but resets. */
        const bool room = n - ended < OPEN_MAX;
        uv_run(&fixture.loop,
               hf_client_ready(fixture.client) && room ? UV_RUN_NOWAIT : UV_RUN_ONCE);
    }
    RUN_UNTIL(&fixture, SOON_MS, answered(asked, n) == n);
    int64_t done = 0, unsure = 0, last = 0;
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(asked[i].answers, 1);
        if (asked[i].err == HF_UNSURE) {
            unsure++;
            continue;
        }
        assert_int_equal(asked[i].err, HF_OK);
        assert_true(asked[i].number > last); /* and each answer is its own */
        last = asked[i].number;
        done++;
    }
    assert_true(hf_proxy_cuts(&proxy) > 3);
    print_message("%d answered, %d unsure, %u cuts\n", (int)done, (int)unsure,
                  hf_proxy_cuts(&proxy));
    assert_true(done > 100 && unsure > 0);
    int64_t executed = hf_fixture_number(&redis, "GET n");
    assert_in_range(executed, done, done + unsure);
    hf_client_fixture_close(&fixture);
    hf_proxy_stop(&proxy);
}

/* ---- the host's process ---- */

static void writing_to_a_server_that_has_gone_raises_no_signal(void **state)
{
    (void)state;
    struct sigaction before, plain = {.sa_handler = SIG_DFL};
    assert_int_equal(sigaction(SIGPIPE, &plain, &before), 0);
    for (int i = 0; i < 20; i++) {
        hf_client_fixture fixture;
        hf_asked asked = {.answers = 0};
        hf_client_fixture_connect(&fixture, redis.url);
        char kill_it[64];
        (void)snprintf(kill_it, sizeof kill_it, "CLIENT KILL ID %lld",
                       (long long)hf_client_server(fixture.client)->client_id);
        (void)sigaction(SIGPIPE, &before,
                        NULL); /* the fixture's own connection may break */
        (void)hf_fixture_command(&redis, kill_it);
        assert_int_equal(sigaction(SIGPIPE, &plain, NULL), 0);
        /* It is written before the loop has seen that the other side is closed. */
        assert_int_equal(hf_ask(&fixture, &asked, 0, "PING"), HF_OK);
        RUN_UNTIL(&fixture, SOON_MS, asked.answers == 1);
        assert_int_equal(asked.err, HF_UNSURE);
        hf_client_fixture_close(&fixture);
    }
    struct sigaction after;
    assert_int_equal(sigaction(SIGPIPE, &before, &after), 0);
    assert_true(after.sa_handler == SIG_DFL);
    sigset_t blocked;
    assert_int_equal(pthread_sigmask(SIG_BLOCK, NULL, &blocked), 0);
    assert_int_equal(sigismember(&blocked, SIGPIPE), 0);
}

/* ---- the loop ---- */

typedef struct late_caller {
    uv_prepare_t prepare;
    hf_client_fixture *fixture;
    hf_asked asked;
    bool made;
} late_caller;

static void call_late(uv_prepare_t *prepare)
{
    late_caller *late = prepare->data;
    if (!late->made)
        assert_int_equal(hf_ask(late->fixture, &late->asked, 0, "PING"), HF_OK);
    late->made = true;
}

static void a_request_made_just_before_the_loop_waits_leaves_at_once(void **state)
{
    (void)state;
    hf_client_fixture fixture;
    late_caller late = {.fixture = &fixture};
    hf_client_fixture_connect(&fixture, redis.url);
    uv_run(&fixture.loop, UV_RUN_ONCE);
    /* From now on nothing wakes the loop but the answer. */
    uv_timer_stop(&fixture.tick);
    assert_int_equal(uv_prepare_init(&fixture.loop, &late.prepare), 0);
    late.prepare.data = &late;
    assert_int_equal(uv_prepare_start(&late.prepare, call_late), 0);
    /* The request's own deadline of a second would end the wait, with HF_UNSURE. */
    for (int i = 0; i < 100 && late.asked.answers == 0; i++)
        uv_run(&fixture.loop, UV_RUN_ONCE);
    assert_int_equal(late.asked.answers, 1);
    assert_int_equal(late.asked.err, HF_OK);
    uv_close((uv_handle_t *)&late.prepare, NULL);
    assert_int_equal(uv_timer_start(&fixture.tick, fixture.tick.timer_cb, 2, 2), 0);
    hf_client_fixture_close(&fixture);
}

static void an_idle_client_does_not_turn_the_loop(void **state)
{
    (void)state;
    hf_client_fixture fixture;
    hf_asked asked = {.answers = 0};
    hf_client_fixture_connect(&fixture, redis.url);
    (void)hf_ask_now(&fixture, &asked, "PING");
    uv_run(&fixture.loop, UV_RUN_ONCE);
    for (int i = 0; i < 50; i++) {
        assert_int_not_equal(uv_backend_timeout(&fixture.loop), 0);
        uv_run(&fixture.loop, UV_RUN_ONCE);
        uv_update_time(&fixture.loop);
    }
    hf_client_fixture_close(&fixture);
}

#define CASE(test) HF_REDIS_TEST(test, &redis)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(answers_come_in_the_order_of_the_requests),
        CASE(any_bytes_go_there_and_back),
        CASE(an_unknown_script_is_loaded_by_the_time_this_is_told),
        CASE(an_error_has_its_class_and_redis_s_own_words),
        CASE(readonly_ends_the_connection_behind_the_answers),
        CASE(waiting_ends_when_the_primary_becomes_a_replica),
        CASE(a_stranger_with_the_id_of_one_that_waits_is_not_unblocked),
        CASE(a_large_request_and_a_large_answer_pass),
        CASE(a_value_that_cannot_change_is_refused_and_the_rest_applies),
        CASE(a_server_that_stops_leaves_requests_unsure_in_time),
        CASE(answers_put_a_deadline_off_but_not_that_of_another),
        CASE(a_process_that_was_stopped_finds_the_answer_that_has_come),
        CASE(closing_answers_what_is_in_flight),
        CASE(a_client_may_be_closed_inside_an_answer),
        CASE(a_client_may_be_closed_inside_the_answers_of_a_loss),
        CASE(a_client_may_be_reset_inside_an_answer),
        CASE(what_had_not_left_before_a_reset_never_leaves),
        CASE(an_answer_may_ask_again),
        CASE(every_request_is_answered_once_while_connections_are_cut),
        CASE(writing_to_a_server_that_has_gone_raises_no_signal),
        CASE(a_request_made_just_before_the_loop_waits_leaves_at_once),
        CASE(an_idle_client_does_not_turn_the_loop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
