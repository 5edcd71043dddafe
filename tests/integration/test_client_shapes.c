/* test_client_shapes.c - servers that a real one never is: old, loading, talking
 * nonsense, or falling silent in the middle of a word. */
#include <stdio.h>
#include <string.h>

#include "tests/support/client_fixture.h"
#include "tests/support/eventually.h"
#include "tests/support/fake_redis.h"

enum { SOON_MS = 30000 };

#define ID_AND(info)                                                                     \
    {                                                                                    \
        {"CLIENT ID", ":7\r\n"}, {"INFO", info},                                         \
        {                                                                                \
            NULL, NULL                                                                   \
        }                                                                                \
    }

static const hf_fake_step nothing[] = {HF_FAKE_END};
static const hf_fake_auto good[] = ID_AND("$24\r\nredis_version:7.0.15\r\nx:\r\n");

static void stop(hf_fake *fake)
{
    const char *why = hf_fake_stop(fake);
    if (why != NULL)
        fail_msg("%s", why);
}

/* The first event of a client that meets this greeting. */
static hf_err greeted(const hf_fake_auto *autos, hf_client_fixture *fixture,
                      const char *url_format)
{
    hf_fake fake;
    char url[sizeof fake.url + 64];
    hf_fake_start(&fake, autos, nothing);
    (void)snprintf(url, sizeof url, "unix://%s%s", url_format, fake.socket);
    hf_client_fixture_open(fixture, url, NULL);
    RUN_UNTIL(fixture, SOON_MS, fixture->ready + fixture->lost == 1);
    hf_err err = fixture->err;
    hf_client_fixture_close(fixture);
    stop(&fake);
    return err;
}

static void an_old_server_is_refused_by_its_version(void **state)
{
    (void)state;
    hf_client_fixture fixture;
    static const hf_fake_auto old[] = ID_AND("$19\r\nredis_version:5.0.7\r\n");
    assert_int_equal(greeted(old, &fixture, ""), HF_UNSUPPORTED);
    assert_non_null(strstr(fixture.detail, "expected Redis 6.2 or newer, found 5.0.7"));
    static const hf_fake_auto older[] = ID_AND("$20\r\nredis_version:6.0.16\r\n");
    assert_int_equal(greeted(older, &fixture, ""), HF_UNSUPPORTED);
}

static void a_server_that_loads_is_waited_for(void **state)
{
    (void)state;
    hf_client_fixture fixture;
    static const hf_fake_auto loading[] =
        ID_AND("$33\r\nredis_version:7.0.15\r\nloading:1\r\n\r\n");
    assert_int_equal(greeted(loading, &fixture, ""), HF_LOADING);
    static const hf_fake_auto refusing[] = {
        {"CLIENT ID", "-LOADING Redis is loading the dataset in memory\r\n"},
        {"INFO", "-LOADING Redis is loading the dataset in memory\r\n"},
        {NULL, NULL}};
    assert_int_equal(greeted(refusing, &fixture, ""), HF_LOADING);
}

static void a_greeting_of_another_shape_is_refused(void **state)
{
    (void)state;
    hf_client_fixture fixture;
    static const hf_fake_auto shapes[][3] = {
        ID_AND("$0\r\n\r\n"),
        ID_AND("*0\r\n"),
        ID_AND(":1\r\n"),
        ID_AND("$-1\r\n"),
        {{"CLIENT ID", "+seven\r\n"}, {"INFO", ""}, {NULL, NULL}},
        {{"CLIENT ID", "HTTP/1.1 400 Bad Request\r\n\r\n"}, {NULL, NULL}, {NULL, NULL}},
        {{"CLIENT ID", "*99999999999999\r\n"}, {NULL, NULL}, {NULL, NULL}},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        hf_err err = greeted(shapes[i], &fixture, "");
        if (err != HF_PROTO)
            fail_msg("shape %zu: %s, %s", i, hf_err_name(err), fixture.detail);
    }
}

static void a_password_that_the_server_repeats_is_not_passed_on(void **state)
{
    (void)state;
    hf_client_fixture fixture;
    static const char *const answers[] = {
        "-ERR unknown command `AUTH`, with args beginning with: `hun`, \r\n",
        "-WRONGPASS not hunter2\r\n", "-ERR what is hunter2?\r\n"};
    for (size_t i = 0; i < 3; i++) {
        const hf_fake_auto autos[] = {{"AUTH", answers[i]}, {NULL, NULL}};
        assert_int_equal(greeted(autos, &fixture, ":hunter2@"), HF_AUTH);
        assert_null(strstr(fixture.detail, "hun"));
    }
    const hf_fake_auto busy[] = {{"AUTH", "-BUSY a script is running\r\n"}, {NULL, NULL}};
    assert_int_equal(greeted(busy, &fixture, ":hunter2@"), HF_BUSY_SCRIPT);
    assert_non_null(strstr(fixture.detail, "BUSY a script is running"));
}

/* ---- after the greeting ---- */

static hf_fake fake;

static void meet(hf_client_fixture *fixture, const hf_fake_step *steps)
{
    hf_fake_start(&fake, good, steps);
    hf_client_fixture_connect(fixture, fake.url);
}

static void leave(hf_client_fixture *fixture)
{
    hf_client_fixture_close(fixture);
    stop(&fake);
}

static void half_an_answer_is_none(void **state)
{
    (void)state;
    static const hf_fake_step steps[] = {HF_FAKE_EXPECT("PING"),
                                         HF_FAKE_SEND("*2\r\n:0\r\n$5\r\nhel"),
                                         HF_FAKE_CLOSE,
                                         HF_FAKE_EXPECT("PING"),
                                         HF_FAKE_SEND("+PONG\r\n"),
                                         HF_FAKE_END};
    hf_client_fixture fixture;
    hf_asked asked = {.answers = 0};
    meet(&fixture, steps);
    (void)hf_ask_now(&fixture, &asked, "PING");
    assert_int_equal(asked.err, HF_UNSURE);
    RUN_UNTIL(&fixture, SOON_MS, fixture.ready == 2);
    assert_int_equal(fixture.lost, 1);
    assert_string_equal(hf_ask_now(&fixture, &asked, "PING"), "PONG");
    leave(&fixture);
}

static void what_was_answered_before_the_end_counts(void **state)
{
    (void)state;
    static const hf_fake_step steps[] = {
        HF_FAKE_EXPECT("ONE"),        HF_FAKE_EXPECT("TWO"), HF_FAKE_EXPECT("THREE"),
        HF_FAKE_SEND(":1\r\n:2\r\n"), HF_FAKE_CLOSE,         HF_FAKE_END};
    hf_client_fixture fixture;
    hf_asked asked[3] = {{.answers = 0}};
    meet(&fixture, steps);
    assert_int_equal(hf_ask(&fixture, &asked[0], 0, "ONE"), HF_OK);
    assert_int_equal(hf_ask(&fixture, &asked[1], 0, "TWO"), HF_OK);
    assert_int_equal(hf_ask(&fixture, &asked[2], 0, "THREE"), HF_OK);
    RUN_UNTIL(&fixture, SOON_MS, asked[2].answers == 1);
    assert_int_equal(asked[0].number, 1);
    assert_int_equal(asked[1].number, 2);
    assert_int_equal(asked[2].err, HF_UNSURE);
    leave(&fixture);
}

/* The size of one read, after which the link looks for more and finds the end. */
static void an_answer_that_fills_a_read_counts_when_the_end_is_behind_it(void **state)
{
    (void)state;
    enum { READ = 16 << 10, HEADER = 8, END = 2 };
    static char answer[READ + 1];
    memset(answer, 'x', READ);
    (void)snprintf(answer, HEADER + 1, "$%d\r\n", READ - HEADER - END);
    answer[HEADER] = 'x';
    memcpy(answer + READ - END, "\r\n", END + 1);
    const hf_fake_step steps[] = {HF_FAKE_EXPECT("GET"), HF_FAKE_STALL(20),
                                  HF_FAKE_SEND(answer), HF_FAKE_CLOSE, HF_FAKE_END};
    hf_client_fixture fixture;
    hf_asked asked = {.answers = 0};
    meet(&fixture, steps);
    assert_int_equal(hf_ask(&fixture, &asked, 0, "GET x"), HF_OK);
    uv_run(&fixture.loop, UV_RUN_NOWAIT); /* it is sent */
    EVENTUALLY(SOON_MS, hf_fake_done(&fake));
    RUN_UNTIL(&fixture, SOON_MS, asked.answers == 1);
    assert_int_equal(asked.err, HF_OK);
    RUN_UNTIL(&fixture, SOON_MS, fixture.lost == 1);
    leave(&fixture);
}

static void an_answer_counts_when_the_next_request_cannot_be_written(void **state)
{
    (void)state;
    static const hf_fake_step steps[] = {HF_FAKE_EXPECT("ONE"), HF_FAKE_STALL(20),
                                         HF_FAKE_SEND(":1\r\n"), HF_FAKE_CLOSE,
                                         HF_FAKE_END};
    hf_client_fixture fixture;
    hf_asked one = {.answers = 0}, two = {.answers = 0};
    meet(&fixture, steps);
    assert_int_equal(hf_ask(&fixture, &one, 0, "ONE"), HF_OK);
    uv_run(&fixture.loop, UV_RUN_NOWAIT);
    EVENTUALLY(SOON_MS, hf_fake_done(&fake));
    assert_int_equal(hf_ask(&fixture, &two, 0, "TWO"), HF_OK);
    RUN_UNTIL(&fixture, SOON_MS, two.answers == 1);
    assert_int_equal(one.number, 1);
    assert_int_equal(two.err, HF_UNSURE);
    leave(&fixture);
}

static void an_unexpected_answer_ends_the_connection_only(void **state)
{
    (void)state;
    static const hf_fake_step steps[] = {
        HF_FAKE_EXPECT("PING"), HF_FAKE_SEND("+PONG\r\n+STRAY\r\n"), HF_FAKE_END};
    hf_client_fixture fixture;
    hf_asked asked = {.answers = 0};
    meet(&fixture, steps);
    assert_string_equal(hf_ask_now(&fixture, &asked, "PING"), "PONG");
    RUN_UNTIL(&fixture, SOON_MS, fixture.lost == 1);
    assert_int_equal(fixture.err, HF_PROTO);
    RUN_UNTIL(&fixture, SOON_MS, fixture.ready == 2);
    leave(&fixture);
}

static void bytes_that_are_no_answer_leave_the_request_unsure(void **state)
{
    (void)state;
    static const hf_fake_step steps[] = {HF_FAKE_EXPECT("PING"), HF_FAKE_SEND("?\r\n"),
                                         HF_FAKE_END};
    hf_client_fixture fixture;
    hf_asked asked = {.answers = 0};
    meet(&fixture, steps);
    (void)hf_ask_now(&fixture, &asked, "PING");
    assert_int_equal(asked.err, HF_UNSURE);
    RUN_UNTIL(&fixture, SOON_MS, fixture.lost == 1);
    assert_int_equal(fixture.err, HF_PROTO);
    leave(&fixture);
}

static void an_answer_after_the_deadline_is_not_taken_for_that_of_another(void **state)
{
    (void)state;
    static const hf_fake_step steps[] = {
        HF_FAKE_EXPECT("SLOW"), HF_FAKE_STALL(200),        HF_FAKE_SEND("+LATE\r\n"),
        HF_FAKE_EXPECT("PING"), HF_FAKE_SEND("+PONG\r\n"), HF_FAKE_END};
    hf_client_fixture fixture;
    hf_asked asked = {.answers = 0};
    meet(&fixture, steps);
    assert_int_equal(hf_ask(&fixture, &asked, 50, "SLOW"), HF_OK);
    RUN_UNTIL(&fixture, SOON_MS, asked.answers == 1);
    assert_int_equal(asked.err, HF_UNSURE);
    RUN_UNTIL(&fixture, SOON_MS, fixture.ready == 2);
    assert_string_equal(hf_ask_now(&fixture, &asked, "PING"), "PONG");
    leave(&fixture);
}

static void an_answer_in_many_pieces_is_one(void **state)
{
    (void)state;
    static const hf_fake_step steps[] = {
        HF_FAKE_EXPECT("PING"), HF_FAKE_SEND("$"),    HF_FAKE_STALL(5),
        HF_FAKE_SEND("4\r"),    HF_FAKE_STALL(5),     HF_FAKE_SEND("\nPO"),
        HF_FAKE_STALL(5),       HF_FAKE_SEND("NG\r"), HF_FAKE_STALL(5),
        HF_FAKE_SEND("\n"),     HF_FAKE_END};
    hf_client_fixture fixture;
    hf_asked asked = {.answers = 0};
    meet(&fixture, steps);
    assert_string_equal(hf_ask_now(&fixture, &asked, "PING"), "PONG");
    assert_int_equal(fixture.lost, 0);
    leave(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_old_server_is_refused_by_its_version),
        cmocka_unit_test(a_server_that_loads_is_waited_for),
        cmocka_unit_test(a_greeting_of_another_shape_is_refused),
        cmocka_unit_test(a_password_that_the_server_repeats_is_not_passed_on),
        cmocka_unit_test(half_an_answer_is_none),
        cmocka_unit_test(what_was_answered_before_the_end_counts),
        cmocka_unit_test(an_answer_that_fills_a_read_counts_when_the_end_is_behind_it),
        cmocka_unit_test(an_answer_counts_when_the_next_request_cannot_be_written),
        cmocka_unit_test(an_unexpected_answer_ends_the_connection_only),
        cmocka_unit_test(bytes_that_are_no_answer_leave_the_request_unsure),
        cmocka_unit_test(an_answer_after_the_deadline_is_not_taken_for_that_of_another),
        cmocka_unit_test(an_answer_in_many_pieces_is_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
