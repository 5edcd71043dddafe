/* test_producer_shapes.c - what a real server will not do to a producer on request:
 * another idea of the time, half an answer, one of another shape, a refusal at a chosen
 * moment. The requests that must come are in the scripts of the fake server, with their
 * numbers. */
#include <stdio.h>
#include <string.h>

#include "holdfast/producer.h"
#include "queue_scripts.h"
#include "tests/support/eventually.h"
#include "tests/support/fake_redis.h"

/* Redis's time is 1000.5 s, so a call must not be executed after 1119 s, less what it
 * took to get there: 111 begins the number, unless that is more than 9 s. */
enum { DEADLINE_MS = 118500, SOON_MS = 30000 };
#define FIRST " 1 111"

static char registers[64]; /* the beginning of that request */

static const hf_fake_auto autos[] = {
    {"CLIENT ID", ":7\r\n"},
    {"INFO", "$24\r\nredis_version:7.0.15\r\nx:\r\n"},
    {"TIME", "*2\r\n$4\r\n1000\r\n$6\r\n500000\r\n"},
    {registers, "*2\r\n:0\r\n:1000500\r\n"},
    {NULL, NULL},
};

static char detail[HF_DETAIL_SIZE];

/* One job's way through a server that follows these steps. */
static hf_err put_through(const hf_fake_step *steps)
{
    hf_fake fake;
    hf_producer *producer;
    const hf_job job = {HF_JOB_INIT, .queue = "q", .type = "t", .id = "x"};
    detail[0] = '\0';
    hf_fake_start(&fake, autos, steps);
    assert_int_equal(
        hf_producer_open(&producer,
                         &(hf_producer_opts){HF_PRODUCER_OPTS_INIT,
                                             .server = HF_SERVER(.url = fake.url),
                                             .deadline_ms = DEADLINE_MS},
                         detail),
        HF_OK);
    hf_err err = hf_enqueue_wait(producer, &job, 1, NULL, 0, detail);
    hf_producer_close(producer, NULL, NULL);
    EVENTUALLY(SOON_MS, hf_fake_done(&fake));
    assert_null(hf_fake_stop(&fake));
    return err;
}

static void a_request_has_a_number_and_an_end_on_redis_clock(void **state)
{
    (void)state;
    static const hf_fake_step steps[] = {
        HF_FAKE_EXPECT(FIRST), HF_FAKE_SEND("*4\r\n:0\r\n:1000500\r\n:0\r\n*0\r\n"),
        HF_FAKE_EXPECT("DEL hf:{q}:seen:"), HF_FAKE_SEND(":1\r\n"), HF_FAKE_END};
    assert_int_equal(put_through(steps), HF_OK);
}

/* Not late by our clock: Redis's has jumped. Its new time is in the answer, and as
 * nothing was done the request goes again, with a new number. */
static void a_clock_that_jumped_costs_one_more_request(void **state)
{
    (void)state;
    static const hf_fake_step steps[] = {
        HF_FAKE_EXPECT(FIRST),
        HF_FAKE_SEND("*2\r\n:-4\r\n:9000500\r\n"),
        HF_FAKE_EXPECT(" 2 911"),
        HF_FAKE_SEND("*4\r\n:0\r\n:9000001\r\n:0\r\n*0\r\n"),
        HF_FAKE_EXPECT("DEL"),
        HF_FAKE_SEND(":1\r\n"),
        HF_FAKE_END};
    assert_int_equal(put_through(steps), HF_OK);
}

static void a_refused_request_gets_a_new_number(void **state)
{
    (void)state;
    static const hf_fake_step steps[] = {
        HF_FAKE_EXPECT(FIRST),
        HF_FAKE_SEND("-LOADING it takes a while\r\n"),
        HF_FAKE_EXPECT(" 2 111"),
        HF_FAKE_SEND("-BUSY with a script\r\n"),
        HF_FAKE_EXPECT(" 3 111"),
        HF_FAKE_SEND("-MISCONF no disk\r\n"),
        HF_FAKE_EXPECT(" 4 111"),
        HF_FAKE_SEND("*4\r\n:0\r\n:1000001\r\n:0\r\n*0\r\n"),
        HF_FAKE_EXPECT("DEL"),
        HF_FAKE_SEND(":1\r\n"),
        HF_FAKE_END};
    assert_int_equal(put_through(steps), HF_OK);
}

/* Once an answer is missing the number stays, whatever is answered later. */
static void an_unanswered_request_keeps_its_number(void **state)
{
    (void)state;
    static const hf_fake_step steps[] = {
        HF_FAKE_EXPECT(FIRST),
        HF_FAKE_SEND("*4\r\n:0\r\n"),
        HF_FAKE_CLOSE,
        HF_FAKE_EXPECT(FIRST),
        HF_FAKE_CLOSE,
        HF_FAKE_EXPECT(FIRST),
        HF_FAKE_SEND("-LOADING it takes a while\r\n"),
        HF_FAKE_EXPECT(FIRST),
        HF_FAKE_SEND("-READONLY not here\r\n"),
        HF_FAKE_EXPECT(FIRST),
        HF_FAKE_SEND("*4\r\n:0\r\n:1000001\r\n:1\r\n*0\r\n"),
        HF_FAKE_END};
    assert_int_equal(put_through(steps), HF_OK);
}

static void an_unanswered_request_that_is_late_or_refused_is_unsure(void **state)
{
    (void)state;
    static const char *const answers[] = {"*2\r\n:-4\r\n:9000500\r\n", "-OOM no room\r\n",
                                          "-ERR something else\r\n"};
    for (size_t i = 0; i < 3; i++) {
        const hf_fake_step steps[] = {HF_FAKE_EXPECT(FIRST), HF_FAKE_CLOSE,
                                      HF_FAKE_EXPECT(FIRST), HF_FAKE_SEND(answers[i]),
                                      HF_FAKE_END};
        assert_int_equal(put_through(steps), HF_UNSURE);
    }
}

static void an_error_that_will_not_pass_is_told_at_once(void **state)
{
    (void)state;
    static const hf_fake_step steps[] = {
        HF_FAKE_EXPECT(FIRST), HF_FAKE_SEND("-ERR something else\r\n"),
        HF_FAKE_EXPECT("DEL"), HF_FAKE_SEND(":1\r\n"), HF_FAKE_END};
    assert_int_equal(put_through(steps), HF_REDIS);
    assert_non_null(strstr(detail, "something else"));
}

static void an_answer_of_another_shape_is_unsure(void **state)
{
    (void)state;
    static const char *const answers[] = {"+OK\r\n", "*1\r\n:0\r\n", ":0\r\n", "$-1\r\n",
                                          "*4\r\n:0\r\n:1\r\n:0\r\n:0\r\n"};
    for (size_t i = 0; i < 5; i++) {
        const hf_fake_step steps[] = {HF_FAKE_EXPECT(FIRST), HF_FAKE_SEND(answers[i]),
                                      HF_FAKE_END};
        assert_int_equal(put_through(steps), HF_UNSURE);
    }
}

/* Without Redis's time (not permitted, say) a request has no end, and the first answer
 * gives one to the next. */
static void a_request_is_sent_even_if_redis_does_not_tell_its_time(void **state)
{
    (void)state;
    static const hf_fake_auto mute[] = {
        {"CLIENT ID", ":7\r\n"},
        {"INFO", "$24\r\nredis_version:7.0.15\r\nx:\r\n"},
        {"TIME", "-NOPERM no\r\n"},
        {registers, "-NOPERM no\r\n"},
        {NULL, NULL},
    };
    static const hf_fake_step steps[] = {
        HF_FAKE_EXPECT(" 1 0 "),
        HF_FAKE_SEND("*4\r\n:0\r\n:1000500\r\n:0\r\n*0\r\n"),
        HF_FAKE_EXPECT(" 2 111"),
        HF_FAKE_SEND("*4\r\n:0\r\n:1000001\r\n:0\r\n*0\r\n"),
        HF_FAKE_EXPECT("DEL"),
        HF_FAKE_SEND(":1\r\n"),
        HF_FAKE_END};
    hf_fake fake;
    hf_producer *producer;
    const hf_job job = {HF_JOB_INIT, .queue = "q", .type = "t", .id = "x"};
    hf_fake_start(&fake, mute, steps);
    const hf_producer_opts opts = {HF_PRODUCER_OPTS_INIT,
                                   .server = HF_SERVER(.url = fake.url),
                                   .deadline_ms = DEADLINE_MS};
    assert_int_equal(hf_producer_open(&producer, &opts, detail), HF_OK);
    assert_int_equal(hf_enqueue_wait(producer, &job, 1, NULL, 0, detail), HF_OK);
    assert_int_equal(hf_enqueue_wait(producer, &job, 1, NULL, 0, detail), HF_OK);
    hf_producer_close(producer, NULL, NULL);
    assert_null(hf_fake_stop(&fake));
}

int main(void)
{
    (void)snprintf(registers, sizeof registers, "EVALSHA %s", hf_lua_queue_register.sha1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_has_a_number_and_an_end_on_redis_clock),
        cmocka_unit_test(a_clock_that_jumped_costs_one_more_request),
        cmocka_unit_test(a_refused_request_gets_a_new_number),
        cmocka_unit_test(an_unanswered_request_keeps_its_number),
        cmocka_unit_test(an_unanswered_request_that_is_late_or_refused_is_unsure),
        cmocka_unit_test(an_error_that_will_not_pass_is_told_at_once),
        cmocka_unit_test(an_answer_of_another_shape_is_unsure),
        cmocka_unit_test(a_request_is_sent_even_if_redis_does_not_tell_its_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
