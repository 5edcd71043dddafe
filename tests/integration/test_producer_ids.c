/* test_producer_ids.c - the producer makes ids that other jobs have already: no job may
 * be lost by that, even if answers are lost.
 *
 * This hardly ever happens by chance (docs/design.md), so the producer's maker of ids is
 * set to a known place, and the ids that come next are taken.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/id.h"
#include "holdfast/admin.h"
#include "holdfast/producer.h"
#include "producer/producer.h"
#include "tests/support/admin.h"
#include "tests/support/eventually.h"
#include "tests/support/producer.h"
#include "tests/support/proxy.h"
#include "tests/support/redis_fixture.h"

enum { SOON_MS = 30000 };

/* In 2050, where the clock will not disturb it. */
static const uint64_t at_ms = UINT64_C(2524608000000), at_low = 7;

static hf_fixture redis;
static hf_proxy proxy;
static hf_producer *producer;
static char detail[HF_DETAIL_SIZE];

static hf_producer *open_run(const char *run)
{
    return hf_test_producer(
        &redis, (hf_producer_opts){HF_PRODUCER_OPTS_INIT,
                                   .server = HF_SERVER(.url = proxy.url), .run = run});
}

static int up(void **state)
{
    (void)state;
    hf_fixture_start(&redis, NULL);
    hf_proxy_start(&proxy, redis.socket);
    producer = open_run(NULL);
    return 0;
}

static int down(void **state)
{
    (void)state;
    hf_producer_close(producer, NULL, NULL);
    hf_test_audit(&redis, false);
    hf_proxy_stop(&proxy);
    hf_fixture_stop(&redis);
    return 0;
}

/* The n-th id that the producer is going to make, from 1. */
static const char *coming(uint64_t n)
{
    static char id[HF_NEW_ID_SIZE];
    hf_id_maker *ids = &producer->requests.queue.ids;
    hf_run_loop_lock(&producer->run);
    ids->ms = at_ms;
    ids->low = at_low;
    hf_run_loop_unlock(&producer->run);
    hf_id_text(at_ms, at_low + n, id);
    return id;
}

static void take(const char *id)
{
    static const char record[] = "{\"v\":1,\"type\":\"other\",\"created\":1}\nnot yours";
    size_t len;
    const char *script = hf_enqueue_script(&len, NULL);
    const char *answer = hf_fixture_command(
        &redis, "EVAL %b 1 hf:{q}: %s 0 0 0 0 %s 0 %s", script, len, "", id, record);
    assert_int_equal(strncmp(answer, "0\n", 2), 0);
}

static void assert_is(const char *id, const char *type)
{
    char start[64];
    (void)snprintf(start, sizeof start, "\"type\":\"%s\"", type);
    assert_non_null(strstr(hf_fixture_command(&redis, "HGET hf:{q}:jobs %s", id), start));
}

static void assert_waiting(long long n)
{
    assert_int_equal(hf_fixture_number(&redis, "ZCARD hf:{q}:schedule"), n);
    assert_int_equal(hf_fixture_number(&redis, "HGET hf:{q}:meta enqueued"), n);
}

/* ---- */

static void a_made_id_that_is_taken_is_made_anew(void **state)
{
    (void)state;
    char taken[HF_NEW_ID_SIZE];
    hf_enqueue_result r = {HF_ENQUEUE_RESULT_INIT};
    memcpy(taken, coming(1), sizeof taken);
    take(taken);
    assert_int_equal(hf_enqueue_wait(producer,
                                     &(hf_job){HF_JOB_INIT, .queue = "q", .type = "mine"},
                                     1, &r, 0, detail),
                     HF_OK);
    assert_int_equal(r.err, HF_OK);
    assert_true(strcmp(taken, r.id) < 0);
    assert_is(taken, "other");
    assert_is(r.id, "mine");
    assert_waiting(2);
}

static void among_chosen_ids_only_the_made_ones_must_be_new(void **state)
{
    (void)state;
    hf_enqueue_result r[5] = {{HF_ENQUEUE_RESULT_INIT}};
    const hf_job jobs[5] = {{HF_JOB_INIT, .queue = "q", .type = "mine"},
                            {HF_JOB_INIT, .queue = "q", .type = "mine", .id = "known"},
                            {HF_JOB_INIT, .queue = "q", .type = "mine"},
                            {HF_JOB_INIT, .queue = "q", .type = "mine", .id = "new"},
                            {HF_JOB_INIT, .queue = "q", .type = "mine", .id = "new"}};
    static const hf_err expected[5] = {HF_OK, HF_EXISTS, HF_OK, HF_OK, HF_EXISTS};
    take("known");
    take(coming(1));
    take(coming(2));
    assert_int_equal(hf_enqueue_wait(producer, jobs, 5, r, 0, detail), HF_OK);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(r[i].err, expected[i]);
    assert_string_equal(r[1].id, "known");
    assert_is("known", "other");
    assert_is(coming(1), "other");
    assert_is(coming(2), "other");
    assert_is(r[0].id, "mine");
    assert_is(r[2].id, "mine");
    assert_string_not_equal(r[0].id, r[2].id);
    assert_waiting(6);
    /* With chosen ids alone nothing is refused. */
    assert_int_equal(hf_enqueue_wait(producer, jobs + 1, 1, r, 0, detail), HF_OK);
    assert_int_equal(r[0].err, HF_EXISTS);
}

typedef struct told {
    char id[HF_ID_SIZE];
    hf_err err;
    atomic_bool done;
} told;

static void on_told(const hf_enqueue_result *result, const char *text, void *arg)
{
    told *t = arg;
    (void)text;
    memcpy(t->id, result->id, sizeof t->id);
    t->err = result->err;
    t->done = true;
}

static void a_callback_learns_the_new_id(void **state)
{
    (void)state;
    static told t;
    take(coming(1));
    assert_int_equal(hf_enqueue(producer,
                                &(hf_job){HF_JOB_INIT, .queue = "q", .type = "mine"},
                                on_told, &t, NULL),
                     HF_OK);
    EVENTUALLY(SOON_MS, t.done);
    assert_int_equal(t.err, HF_OK);
    assert_is(t.id, "mine");
    assert_waiting(2);
}

/* Also while it is not known whether the request was executed before. */
static void a_taken_id_is_noticed_after_a_lost_answer(void **state)
{
    (void)state;
    const char *sha;
    hf_enqueue_result r[3] = {{HF_ENQUEUE_RESULT_INIT}};
    const hf_job jobs[3] = {{HF_JOB_INIT, .queue = "q", .type = "mine"},
                            {HF_JOB_INIT, .queue = "q", .type = "mine"},
                            {HF_JOB_INIT, .queue = "q", .type = "mine"}};
    (void)hf_enqueue_script(NULL, &sha);
    take(coming(2));
    (void)coming(1);
    hf_proxy_lose_answer(&proxy, sha); /* that of the refusal */
    assert_int_equal(hf_enqueue_wait(producer, jobs, 3, r, 0, detail), HF_OK);
    assert_int_equal(hf_proxy_cuts(&proxy), 1);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(r[i].err, HF_OK);
        assert_is(r[i].id, "mine");
    }
    assert_waiting(4);
}

static void a_run_of_a_made_name_loses_no_line(void **state)
{
    (void)state;
    char taken[HF_RUN_ID_SIZE];
    hf_enqueue_result r[3] = {{HF_ENQUEUE_RESULT_INIT}};
    const hf_job jobs[3] = {{HF_JOB_INIT, .queue = "q", .type = "mine"},
                            {HF_JOB_INIT, .queue = "q", .type = "mine"},
                            {HF_JOB_INIT, .queue = "q", .type = "mine"}};
    hf_id_of_run(hf_producer_id(producer), 101, taken);
    take(taken);
    assert_int_equal(hf_enqueue_numbered(producer, jobs, 3, 1, 100, r, detail), HF_OK);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(r[i].err, HF_OK);
        assert_int_equal(strlen(r[i].id), HF_NEW_ID_LEN);
        assert_is(r[i].id, "mine");
    }
    assert_string_not_equal(r[1].id, taken);
    assert_is(taken, "other");
    assert_waiting(4);
}

/* What it sent before is known to exist, if Redis does not remember its numbers. */
static void a_run_that_is_gone_on_with_keeps_its_ids(void **state)
{
    (void)state;
    static const char run[] = "01M7Y0GNDW8KZGSWPCGM0CSBQW";
    char taken[HF_RUN_ID_SIZE];
    hf_enqueue_result r[2] = {{HF_ENQUEUE_RESULT_INIT}};
    const hf_job jobs[2] = {{HF_JOB_INIT, .queue = "q", .type = "mine"},
                            {HF_JOB_INIT, .queue = "q", .type = "mine"}};
    hf_id_of_run(run, 0, taken);
    take(taken);
    hf_producer *other = open_run(run);
    assert_int_equal(hf_enqueue_numbered(other, jobs, 2, 1, 0, r, detail), HF_OK);
    assert_int_equal(r[0].err, HF_EXISTS);
    assert_string_equal(r[0].id, taken);
    assert_int_equal(r[1].err, HF_OK);
    hf_producer_close(other, NULL, NULL);
    assert_waiting(2);
}

/* ---- what an id tells ---- */

static void created_is_written_where_the_id_does_not_tell_it(void **state)
{
    (void)state;
    static const char run[] = "01M7Y0GNDW8KZGSWPCGM0CSBQW"; /* of 2026 */
    hf_enqueue_result r = {HF_ENQUEUE_RESULT_INIT};
    const hf_job job = {HF_JOB_INIT, .queue = "q", .type = "mine"};
    assert_int_equal(hf_enqueue_wait(producer, &job, 1, &r, 0, detail), HF_OK);
    assert_string_equal(hf_fixture_command(&redis, "HGET hf:{q}:jobs %s", r.id),
                        "{\"type\":\"mine\"}\n");
    (void)coming(1); /* the maker is ahead by decades */
    assert_int_equal(hf_enqueue_wait(producer, &job, 1, &r, 0, detail), HF_OK);
    assert_non_null(
        strstr(hf_fixture_command(&redis, "HGET hf:{q}:jobs %s", r.id), "created"));
    hf_producer *other = open_run(run);
    assert_int_equal(hf_enqueue_numbered(other, &job, 1, 1, 0, &r, detail), HF_OK);
    assert_string_equal(hf_fixture_command(&redis, "HGET hf:{q}:jobs %s", r.id),
                        "{\"type\":\"mine\"}\n");
    hf_producer_close(other, NULL, NULL);
    other = open_run("mine");
    assert_int_equal(hf_enqueue_numbered(other, &job, 1, 1, 0, &r, detail), HF_OK);
    assert_non_null(
        strstr(hf_fixture_command(&redis, "HGET hf:{q}:jobs %s", r.id), "created"));
    hf_producer_close(other, NULL, NULL);
}

static void an_administrator_reads_it_from_the_id(void **state)
{
    (void)state;
    hf_job_info info = {HF_JOB_INFO_INIT};
    hf_enqueue_result r = {HF_ENQUEUE_RESULT_INIT};
    const hf_job job = {HF_JOB_INIT, .queue = "q", .type = "mine"};
    int64_t before = hf_wall_ms();
    assert_int_equal(hf_enqueue_wait(producer, &job, 1, &r, 0, detail), HF_OK);
    hf_admin *admin = hf_test_admin(proxy.url);
    assert_int_equal(hf_admin_job(admin, "q", r.id, &info, NULL, detail), HF_OK);
    assert_true(info.created_ms >= before && info.created_ms <= hf_wall_ms());
    /* An id of that form, but of a time to come; and one of another form. */
    static const char *const others[] = {"order-20260101", "no-id-of-ours"};
    for (size_t i = 0; i < 2; i++) {
        size_t len;
        const char *script = hf_enqueue_script(&len, NULL);
        (void)hf_fixture_command(&redis, "EVAL %b 1 hf:{q}: %s 0 0 0 0 %s 0 %s", script,
                                 len, "", others[i], "{\"type\":\"t\"}\n");
        assert_int_equal(hf_admin_job(admin, "q", others[i], &info, NULL, detail), HF_OK);
        assert_string_equal(info.type, "t");
        assert_true(info.created_ms == 0);
    }
    hf_admin_close(admin);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_made_id_that_is_taken_is_made_anew),
        TEST(among_chosen_ids_only_the_made_ones_must_be_new),
        TEST(a_callback_learns_the_new_id),
        TEST(a_taken_id_is_noticed_after_a_lost_answer),
        TEST(a_run_of_a_made_name_loses_no_line),
        TEST(a_run_that_is_gone_on_with_keeps_its_ids),
        TEST(created_is_written_where_the_id_does_not_tell_it),
        TEST(an_administrator_reads_it_from_the_id),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
