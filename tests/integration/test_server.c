/* test_server.c - what the connections to one Redis share: its address, its life, its
 * clock, its pause. Each connection is on a loop of its own, as a worker's and its
 * watchdog's are. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "redis/server.h"
#include "tests/support/client_fixture.h"
#include "tests/support/redis_fixture.h"

enum { SOON_MS = 30000 };

static hf_fixture redis;
static hf_server *server;
static hf_client_fixture one, other;

static int up(void **state)
{
    (void)state;
    hf_fixture_start(&redis, &(hf_fixture_options){.tcp = true});
    const hf_server_opts opts = {HF_SERVER_OPTS_INIT, .url = redis.url};
    assert_int_equal(hf_server_open(&server, &opts, NULL), HF_OK);
    return 0;
}

static int down(void **state)
{
    (void)state;
    hf_server_close(server);
    hf_fixture_stop(&redis);
    return 0;
}

static void connect_one(hf_client_fixture *fixture, bool blocks)
{
    hf_client_fixture_open(fixture, NULL,
                           &(hf_client_opts){.redis = server, .blocks = blocks});
    RUN_UNTIL(fixture, SOON_MS, fixture->ready == 1);
}

static void connect_two(bool other_blocks)
{
    connect_one(&one, false);
    connect_one(&other, other_blocks);
}

static void close_two(void)
{
    hf_client_fixture_close(&one);
    hf_client_fixture_close(&other);
}

/* ---- its address ---- */

static void *drop(void *arg)
{
    hf_server_drop(arg);
    return NULL;
}

/* Nothing was lost or refused: the connections are as good as new. */
static void dropped_it_takes_nothing_more_and_connects_anew(void **state)
{
    (void)state;
    pthread_t thread;
    hf_asked before = {.answers = 0}, after = {.answers = 0};
    connect_two(false);
    assert_int_equal(hf_ask(&one, &before, 0, "SET never come"), HF_OK);
    assert_int_equal(pthread_create(&thread, NULL, drop, server), 0);
    pthread_join(thread, NULL);
    assert_false(hf_client_ready(one.client));
    assert_int_equal(hf_ask(&one, &after, 0, "PING"), HF_CONN);
    assert_int_equal(hf_ask(&other, &after, 0, "PING"), HF_CONN);
    RUN_UNTIL(&one, SOON_MS, one.ready == 2);
    RUN_UNTIL(&other, SOON_MS, other.ready == 2);
    assert_int_equal(one.lost, 1);
    assert_int_equal(other.lost, 1);
    assert_int_equal(before.err, HF_UNSURE);
    assert_string_equal(hf_fixture_command(&redis, "EXISTS never"), "0");
    assert_int_equal(hf_client_life(one.client), 1);
    close_two();
}

/* A connection that has failed often waits for a second and more between two tries. */
static void dropped_it_tries_again_as_at_the_beginning(void **state)
{
    (void)state;
    enum { TRIES = 6, MORE = 3, LEAST_MS = 2700 };
    connect_one(&one, false);
    hf_fixture_kill(&redis, SIGKILL);
    RUN_UNTIL(&one, SOON_MS, one.lost == TRIES);
    uint64_t start_ms = hf_test_fair_ms();
    hf_server_drop(server);
    RUN_UNTIL(&one, SOON_MS, one.lost == TRIES + MORE);
    if (hf_test_fair_ms() - start_ms >= LEAST_MS)
        fail_msg("it waited");
    hf_client_fixture_close(&one);
}

static void count_news(uv_async_t *news)
{
    ++*(unsigned *)news->data;
}

/* They name it once a second. Only another primary is news, unless a connection waits. */
static void sentinels_that_repeat_themselves_wake_no_connection(void **state)
{
    (void)state;
    unsigned heard = 0;
    uv_loop_t loop;
    hf_server_word word;
    hf_server_seat seat = {.news.data = &heard};
    const hf_place here = {.host = "127.0.0.1", .port = 1};
    const hf_place there = {.host = "127.0.0.1", .port = 2};
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(uv_async_init(&loop, &seat.news, count_news), 0);
    hf_server_join(server, &seat);
#define EXPECT_NEWS(n) (uv_run(&loop, UV_RUN_NOWAIT), assert_int_equal(heard, n))
    hf_server_named(server, &here);
    EXPECT_NEWS(1);
    hf_server_named(server, &here);
    hf_server_not_named(server, HF_CONN, "it is silent");
    EXPECT_NEWS(1);
    uint64_t answers = hf_server_find(server, NULL);
    assert_false(hf_server_word_after(server, answers, &word));
    hf_server_named(server, &here);
    EXPECT_NEWS(2);
    assert_true(hf_server_word_after(server, answers, &word));
    hf_server_named(server, &here);
    EXPECT_NEWS(2);
    (void)hf_server_find(server, NULL);
    hf_server_not_named(server, HF_CONN, "it is silent");
    EXPECT_NEWS(3);
    hf_server_named(server, &there);
    EXPECT_NEWS(4);
    hf_server_leave(server, &seat);
    hf_server_unref(server);
    uv_close((uv_handle_t *)&seat.news, NULL);
    assert_int_equal(uv_run(&loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&loop), 0);
}

/* ---- its life ---- */

static void a_restarted_server_is_another_life_for_all(void **state)
{
    (void)state;
    connect_two(false);
    assert_int_equal(hf_client_life(one.client), 1);
    assert_int_equal(hf_client_life(other.client), 1);
    hf_client_reset(one.client);
    RUN_UNTIL(&one, SOON_MS, one.ready == 2);
    assert_int_equal(hf_client_life(one.client), 1);
    hf_fixture_kill(&redis, SIGKILL);
    hf_fixture_restart(&redis);
    RUN_UNTIL(&one, SOON_MS, one.ready == 3);
    RUN_UNTIL(&other, SOON_MS, other.ready == 2);
    assert_int_equal(hf_client_life(one.client), 2);
    assert_int_equal(hf_client_life(other.client), 2);
    close_two();
}

/* One is refused to write. The other one would ask a replica for ever. */
static void what_one_finds_to_be_a_replica_is_left_by_all(void **state)
{
    (void)state;
    hf_asked asked = {.answers = 0};
    connect_two(false);
    hf_fixture_command(&redis, "REPLICAOF 127.0.0.1 1");
    (void)hf_ask_now(&one, &asked, "SET a b");
    assert_int_equal(asked.err, HF_READONLY);
    RUN_UNTIL(&other, SOON_MS, other.lost >= 1);
    assert_int_equal(other.err, HF_READONLY);
    hf_fixture_command(&redis, "REPLICAOF NO ONE");
    RUN_UNTIL(&one, SOON_MS, one.ready == 2);
    RUN_UNTIL(&other, SOON_MS, other.ready == 2);
    close_two();
}

/* Only READONLY answers end connections; this one waits for something else. */
static void one_that_blocks_is_left_without_its_answer(void **state)
{
    (void)state;
    hf_asked refused = {.answers = 0}, blocked = {.answers = 0};
    connect_two(true);
    hf_fixture_command(&redis, "REPLICAOF 127.0.0.1 1");
    assert_int_equal(hf_ask(&other, &blocked, 60000, "XREAD BLOCK 50000 STREAMS s $"),
                     HF_OK);
    for (int i = 0; i < 10; i++)
        uv_run(&other.loop, UV_RUN_ONCE);
    (void)hf_ask_now(&one, &refused, "SET a b");
    RUN_UNTIL(&other, SOON_MS, blocked.answers == 1);
    assert_int_equal(blocked.err, HF_UNSURE);
    assert_int_equal(other.err, HF_READONLY);
    close_two();
}

/* Its run id is the same: it was demoted and promoted, or its first replica has come.
 * Else answers of the older connection would count as of an earlier life for ever. */
static void another_replication_id_moves_all_connections_to_one_life(void **state)
{
    (void)state;
    connect_one(&one, false);
    assert_string_equal(hf_fixture_command(&redis, "REPLICAOF 127.0.0.1 1"), "OK");
    assert_string_equal(hf_fixture_command(&redis, "REPLICAOF NO ONE"), "OK");
    connect_one(&other, false);
    RUN_UNTIL(&one, SOON_MS, one.ready == 2);
    assert_true(hf_client_life(one.client) == hf_client_life(other.client));
    close_two();
}

/* ---- its clock ---- */

static void a_sample_of_one_tells_all_the_time(void **state)
{
    (void)state;
    assert_int_equal(hf_server_now(server), 0);
    uint64_t now_ns = hf_boot_ns();
    assert_int_equal(hf_server_sample(server, 5000000, now_ns), 0);
    assert_in_range(hf_server_now(server), 4999000, 5001000);
    assert_in_range(hf_server_sample(server, 5060000, hf_boot_ns()), 59000, 60000);
}

/* ---- its pause ---- */

static uint64_t pause_ms(hf_err err)
{
    hf_server_pause(server, err, hf_boot_ns());
    return (server->pause_until_ns - server->paused_ns) / HF_MS_NS;
}

static void each_refusal_in_a_row_makes_a_longer_pause(void **state)
{
    (void)state;
    assert_int_equal(pause_ms(HF_NOSCRIPT), 0); /* by now it has the script */
    assert_in_range(pause_ms(HF_NOSCRIPT), 8, 12);
    assert_in_range(pause_ms(HF_BUSY_SCRIPT), 16, 24);
    uint64_t until_ns = server->pause_until_ns;
    hf_server_pause(server, HF_BUSY_SCRIPT, server->paused_ns - 1);
    assert_int_equal(server->pause_until_ns, until_ns); /* the same cause */
    for (int i = 0; i < 100; i++)
        (void)pause_ms(HF_LOADING);
    assert_in_range(pause_ms(HF_LOADING), 80, 120);
    hf_server_accepted(server);
    assert_in_range(pause_ms(HF_LOADING), 4, 6);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, up, down)
    const struct CMUnitTest tests[] = {
        CASE(dropped_it_takes_nothing_more_and_connects_anew),
        CASE(dropped_it_tries_again_as_at_the_beginning),
        CASE(sentinels_that_repeat_themselves_wake_no_connection),
        CASE(a_restarted_server_is_another_life_for_all),
        CASE(what_one_finds_to_be_a_replica_is_left_by_all),
        CASE(one_that_blocks_is_left_without_its_answer),
        CASE(a_sample_of_one_tells_all_the_time),
        CASE(each_refusal_in_a_row_makes_a_longer_pause),
        CASE(another_replication_id_moves_all_connections_to_one_life),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
