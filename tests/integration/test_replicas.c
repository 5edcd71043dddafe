/* test_replicas.c - what an answer is worth once replicas have confirmed it
 * (redis/replicas.h): one primary with two replicas, a connection for requests, and the
 * rounds beside it. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "redis/replicas.h"
#include "redis/server.h"
#include "tests/support/client_fixture.h"
#include "tests/support/eventually.h"
#include "tests/support/replicas.h"

enum { SOON_MS = 30000, SHORT_MS = 700, MANY = 500, ROUNDS_MAX = 20, WRITES = 50 };

typedef struct question {
    hf_confirm confirm;
    unsigned answers;
    hf_err err;
    char detail[HF_DETAIL_SIZE];
} question;

static hf_fixture primary, replicas[2];
static hf_client_fixture fixture;
static hf_server *server;
static hf_replicas *rounds;
static uint32_t least; /* replicas that each question wants */

static int up(void **state)
{
    (void)state;
    hf_fixture_start(&primary,
                     &(hf_fixture_options){.tcp = true,
                                           .persistent = true,
                                           .args = {"--repl-diskless-sync-delay", "0"}});
    hf_replicas_start(replicas, HF_COUNT(replicas), &primary);
    const hf_server_opts opts = {HF_SERVER_OPTS_INIT, .url = primary.url,
                                 .connect_timeout_ms = SOON_MS,
                                 .request_timeout_ms = SOON_MS};
    assert_int_equal(hf_server_open(&server, &opts, NULL), HF_OK);
    return 0;
}

static int down(void **state)
{
    (void)state;
    hf_server_close(server);
    hf_replicas_stop(replicas, HF_COUNT(replicas));
    hf_fixture_stop(&primary);
    return 0;
}

static void begin(uint32_t wanted)
{
    hf_client_fixture_open(&fixture, NULL, &(hf_client_opts){.redis = server});
    assert_int_equal(hf_replicas_open(&rounds, &fixture.loop, server, "mark"), HF_OK);
    least = wanted;
    RUN_UNTIL(&fixture, SOON_MS, fixture.ready == 1);
}

static void on_closed(void *arg)
{
    *(bool *)arg = true;
}

static void end(void)
{
    bool closed = false;
    hf_replicas_close(rounds, on_closed, &closed);
    RUN_UNTIL(&fixture, SOON_MS, closed);
    hf_client_fixture_close(&fixture);
}

static void on_confirmed(void *arg, hf_err err, const char *detail)
{
    question *q = arg;
    assert_int_equal(q->answers, 0);
    q->answers++;
    q->err = err;
    (void)snprintf(q->detail, sizeof q->detail, "%s", detail);
}

static void ask(question *q, uint32_t ms)
{
    *q = (question){.confirm = {.life = hf_client_life(fixture.client),
                                .wanted = least,
                                .until_ns = hf_boot_ns() + ms * HF_MS_NS,
                                .cb = on_confirmed,
                                .arg = q}};
    hf_replicas_ask(rounds, &q->confirm);
    assert_int_equal(q->answers, 0);
}

static void write_something(void)
{
    hf_asked asked;
    asked = (hf_asked){.answers = 0};
    assert_string_equal(hf_ask_now(&fixture, &asked, "INCR n"), asked.text);
    assert_int_equal(asked.err, HF_OK);
}

static void write_and_ask(question *q, uint32_t ms)
{
    write_something();
    ask(q, ms);
    RUN_UNTIL(&fixture, SOON_MS, q->answers == 1);
}

static void expect_confirmed(question *q)
{
    write_and_ask(q, SOON_MS);
    if (q->err != HF_OK)
        fail_msg("not confirmed: %s '%s'", hf_err_name(q->err), q->detail);
}

/* Until HF_REPLICAS_LEFT_MS after `since`, which is before the replica was missing, no
 * question is answered with HF_OK. Why not is what the last round saw: on a busy machine
 * it may have been too short for the replica that is there, and we ask again. */
static void expect_unconfirmed(question *q, hf_test_span since, const char *why)
{
    bool over = false;
    while (!over) {
        write_and_ask(q, SHORT_MS);
        over = hf_test_now_ms() - since.from_ms >= HF_REPLICAS_LEFT_MS;
        if (q->err == HF_UNCONFIRMED && strstr(q->detail, why) != NULL)
            return;
        if (q->err != HF_UNCONFIRMED && (q->err != HF_OK || !over))
            break;
    }
    if (!over || !hf_test_span_is_busy(since))
        fail_msg("expected '%s', found %s '%s'", why, hf_err_name(q->err), q->detail);
}

/* How many replicas must confirm, as the mark tells. */
static int needed(void)
{
    const char *mark = hf_fixture_command(&primary, "GET mark");
    const char *last = strrchr(mark, ' ');
    return last == NULL ? -1 : (int)strtol(last, NULL, 10);
}

/* A round that a replica is too slow for does not meet it. */
static void confirm_until_needed(question *q, int n)
{
    EVENTUALLY(SOON_MS, (expect_confirmed(q), needed() == n));
}

/* One of them is enough, and both are there. */
static void begin_with_both(void)
{
    question q;
    begin(1);
    confirm_until_needed(&q, 2);
}

/* ---- what is counted ---- */

static void what_replicas_have_is_confirmed(void **state)
{
    question q;
    (void)state;
    begin(2);
    expect_confirmed(&q);
    for (size_t i = 0; i < HF_COUNT(replicas); i++)
        assert_string_equal(hf_fixture_command(&replicas[i], "GET n"), "1");
    end();
}

static void too_few_replicas_are_told_in_time(void **state)
{
    question q;
    (void)state;
    begin(3);
    expect_unconfirmed(&q, hf_test_span_begin(), "of 3 replicas");
    end();
}

/* WAIT alone would count what its own connection has caused, which is nothing. */
static void what_another_connection_wrote_is_not_confirmed_without_replicas(void **state)
{
    question q;
    (void)state;
    begin(2);
    expect_confirmed(&q);
    const hf_test_span stopped = hf_test_span_begin();
    hf_replicas_signal(replicas, HF_COUNT(replicas), SIGSTOP);
    expect_unconfirmed(&q, stopped, "0 of 2 replicas");
    write_something();
    ask(&q, SOON_MS);
    hf_replicas_signal(replicas, HF_COUNT(replicas), SIGCONT);
    RUN_UNTIL(&fixture, SOON_MS, q.answers == 1);
    assert_int_equal(q.err, HF_OK);
    end();
}

/* Sentinels promote a replica without a word to its primary. The other one goes on to
 * confirm for a while. */
static void a_replica_that_has_left_may_be_the_next_primary(void **state)
{
    question q;
    (void)state;
    begin_with_both();
    const hf_test_span left = hf_test_span_begin();
    assert_string_equal(hf_fixture_command(&replicas[0], "REPLICAOF NO ONE"), "OK");
    EVENTUALLY(SOON_MS, hf_replicas_online(&primary) == 1);
    expect_unconfirmed(&q, left, "1 of 2 replicas");
    expect_confirmed(&q);
    assert_true(hf_test_now_ms() - left.from_ms >= HF_REPLICAS_LEFT_MS);
    end();
}

/* As many are connected as before. */
static void one_that_took_its_place_does_not_confirm_for_it(void **state)
{
    hf_fixture third;
    question q;
    (void)state;
    begin_with_both();
    hf_fixture_start(&third, &(hf_fixture_options){HF_PRIMARY});
    const hf_test_span left = hf_test_span_begin();
    assert_string_equal(hf_fixture_command(&replicas[0], "REPLICAOF NO ONE"), "OK");
    EVENTUALLY(SOON_MS, hf_replicas_online(&primary) == 1);
    assert_string_equal(
        hf_fixture_command(&third, "REPLICAOF 127.0.0.1 %u", (unsigned)primary.port),
        "OK");
    EVENTUALLY(SOON_MS, ((void)hf_fixture_command(&primary, "INCR n"),
                         hf_fixture_number(&primary, "WAIT 2 500") == 2));
    expect_unconfirmed(&q, left, "the next primary");
    expect_confirmed(&q);
    end();
    hf_fixture_stop(&third);
}

static void a_process_that_comes_later_knows_that_it_has_left(void **state)
{
    question q;
    (void)state;
    begin_with_both();
    end();
    assert_string_equal(hf_fixture_command(&replicas[0], "REPLICAOF NO ONE"), "OK");
    EVENTUALLY(SOON_MS, hf_replicas_online(&primary) == 1);
    begin(1);
    expect_unconfirmed(&q, hf_test_span_begin(), "1 of 2 replicas");
    confirm_until_needed(&q, 1);
    end();
    begin(1);
    const uint64_t from_ms = hf_test_fair_ms();
    expect_confirmed(&q); /* it is known that it stays away */
    assert_true(hf_test_fair_ms() - from_ms < HF_REPLICAS_LEFT_MS / 2);
    end();
}

/* Sentinels look at the replicas once in a while: they may take the one that lags. */
static void a_replica_that_lags_may_be_the_next_primary(void **state)
{
    question q;
    (void)state;
    begin_with_both();
    hf_test_span stopped = hf_test_span_begin();
    hf_fixture_signal(&replicas[1], SIGSTOP);
    expect_unconfirmed(&q, stopped, "1 of 2 replicas");
    expect_confirmed(&q);
    assert_true(hf_test_now_ms() - stopped.from_ms >= HF_REPLICAS_LEFT_MS);
    hf_fixture_signal(&replicas[1], SIGCONT);
    confirm_until_needed(&q, 2); /* from now on it is one of two again */
    stopped = hf_test_span_begin();
    hf_fixture_signal(&replicas[1], SIGSTOP);
    expect_unconfirmed(&q, stopped, "1 of 2 replicas");
    hf_fixture_signal(&replicas[1], SIGCONT);
    expect_confirmed(&q);
    end();
}

/* ---- how often it asks ---- */

static void all_that_ask_meanwhile_share_a_round(void **state)
{
    static question q[MANY];
    (void)state;
    begin(2);
    expect_confirmed(&q[0]);
    long long before = hf_fixture_calls(&primary, "wait");
    for (size_t i = 0; i < MANY; i++) {
        ask(&q[i], SOON_MS);
        if (i % (MANY / 5) == 0)
            uv_run(&fixture.loop, UV_RUN_NOWAIT);
    }
    for (size_t i = 0; i < MANY; i++) {
        RUN_UNTIL(&fixture, SOON_MS, q[i].answers == 1);
        assert_int_equal(q[i].err, HF_OK);
    }
    long long n = hf_fixture_calls(&primary, "wait") - before;
    print_message("%d questions, %lld rounds\n", MANY, n);
    assert_in_range(n, 1, ROUNDS_MAX);
    end();
}

static void other_requests_do_not_wait_for_replicas(void **state)
{
    question q;
    (void)state;
    begin(3);
    write_something();
    ask(&q, 10 * SOON_MS);
    const long long before = hf_fixture_calls(&primary, "wait");
    for (unsigned i = 0; i < WRITES; i++)
        write_something();
    const long long n = hf_fixture_calls(&primary, "wait") - before;
    print_message("%d requests, %lld rounds\n", WRITES, n);
    assert_true(n < WRITES * 3 / 4); /* as many, if each came after a round */
    assert_int_equal(q.answers, 0);
    end();
}

/* ---- whose answer it was ---- */

static void an_answer_of_another_life_is_not_confirmed(void **state)
{
    question early, late;
    (void)state;
    begin(2);
    expect_confirmed(&early);
    /* While a round is under way, and before one begins. */
    hf_fixture_signal(&replicas[0], SIGSTOP);
    write_something();
    ask(&early, 2 * SOON_MS);
    EVENTUALLY(SOON_MS, (uv_run(&fixture.loop, UV_RUN_NOWAIT),
                         hf_fixture_calls(&primary, "wait") > 1));
    uint64_t life = hf_client_life(fixture.client);
    hf_fixture_kill(&primary, SIGKILL);
    hf_fixture_restart(&primary);
    hf_fixture_signal(&replicas[0], SIGCONT);
    RUN_UNTIL(&fixture, SOON_MS, fixture.ready == 2);
    assert_true(hf_client_life(fixture.client) > life);
    ask(&late, SOON_MS);
    late.confirm.life = life;
    RUN_UNTIL(&fixture, SOON_MS, early.answers == 1 && late.answers == 1);
    assert_int_equal(early.err, HF_UNSURE);
    assert_int_equal(late.err, HF_UNSURE);
    expect_confirmed(&late);
    end();
}

static void a_server_that_is_away_confirms_nothing(void **state)
{
    question q;
    (void)state;
    begin(2);
    expect_confirmed(&q);
    hf_fixture_signal(&primary, SIGSTOP);
    ask(&q, SHORT_MS);
    RUN_UNTIL(&fixture, SOON_MS, q.answers == 1);
    assert_int_equal(q.err, HF_UNCONFIRMED);
    hf_fixture_signal(&primary, SIGCONT);
    end();
}

static void closing_answers_all_questions(void **state)
{
    question q[2];
    (void)state;
    begin(3);
    write_something();
    ask(&q[0], SOON_MS);
    EVENTUALLY(SOON_MS, (uv_run(&fixture.loop, UV_RUN_NOWAIT),
                         hf_fixture_calls(&primary, "wait") > 0));
    ask(&q[1], SOON_MS);
    end();
    for (size_t i = 0; i < HF_COUNT(q); i++) {
        assert_int_equal(q[i].answers, 1);
        assert_int_equal(q[i].err, HF_CLOSED);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_replicas_have_is_confirmed),
        TEST(too_few_replicas_are_told_in_time),
        TEST(what_another_connection_wrote_is_not_confirmed_without_replicas),
        TEST(a_replica_that_has_left_may_be_the_next_primary),
        TEST(one_that_took_its_place_does_not_confirm_for_it),
        TEST(a_process_that_comes_later_knows_that_it_has_left),
        TEST(a_replica_that_lags_may_be_the_next_primary),
        TEST(all_that_ask_meanwhile_share_a_round),
        TEST(other_requests_do_not_wait_for_replicas),
        TEST(an_answer_of_another_life_is_not_confirmed),
        TEST(a_server_that_is_away_confirms_nothing),
        TEST(closing_answers_all_questions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
