/* test_far_times.c - numbers that are no times: delays beyond all time, scores that other
 * hands wrote, arguments that are not even numbers. They make no job due, leave nothing
 * half done, and cause no endless useless claims. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "queue_scripts.h"
#include "tests/support/dump.h"
#include "tests/support/eventually.h"
#include "tests/support/queue_fixture.h"
#include "tests/support/worker_fixture.h"

enum {
    WORDS = 14,
    LOOPING = 50 /* scripts: far more than an idle worker sends in 1 s */
};

#define BEYOND_MS (INT64_C(2562047788015) * 3600000) /* above 2^63 with any time */

static hf_queue_fixture fixture;
static hf_worker_fixture worker;

static int down(void **state)
{
    hf_worker_fixture_end(&worker);
    return hf_queue_fixture_down(state);
}

static void is_due_in_a_hundred_years(const char *id)
{
    long long due = hf_fixture_number(&fixture.redis, "ZSCORE hf:{q}:schedule %s", id);
    if (due < fixture.now_ms + HF_DELAY_MAX_MS - 1000 ||
        due > fixture.now_ms + HF_DELAY_MAX_MS)
        fail_msg("%s is due at %lld", id, due);
}

/* ---- what a holder asks for ---- */

static void put_back(hf_verdict_op op, const char *id)
{
    const hf_verdict_args args = {.worker = "w", .dead_max = 10, .dead_age_ms = 1000};
    const hf_verdict_item item = {.id = id, .due_ms = BEYOND_MS, .error = {"no", 2}};
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, id, 0), HF_OK);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 1, 0), 1);
    assert_int_equal(hf_queue_fixture_verdict(&fixture, op, &args, &item), HF_OK);
    is_due_in_a_hundred_years(id);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 1, 0), 0);
    assert_true(fixture.next_ms > fixture.now_ms);
}

static void a_delay_beyond_all_time_is_a_hundred_years(void **state)
{
    (void)state;
    put_back(HF_OP_RETRY, "retried");
    put_back(HF_OP_RELEASE, "released");
}

static hf_verdict much_later(hf_run *run, void *arg)
{
    hf_run_set_retry_in(run, *(int64_t *)arg);
    return HF_VERDICT_RETRY;
}

static void a_handler_cannot_ask_for_more_than_a_hundred_years(void **state)
{
    int64_t delay_ms = INT64_MAX;
    (void)state;
    hf_worker_fixture_start_handler(&worker, hf_fixture_url(&fixture.redis), 0,
                                    much_later, &delay_ms);
    hf_queue_fixture_put(&fixture, "one", "ok", 0);
    EVENTUALLY(15000, hf_queue_fixture_meta(&fixture, "failed") == 1);
    fixture.now_ms = hf_queue_fixture_now(&fixture);
    is_due_in_a_hundred_years("one");
    assert_int_equal(hf_worker_fixture_said(&worker, " in=36525d"), 1);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
}

/* ---- what other hands wrote ---- */

static const char *const beyond[] = {"inf", "1e300", "1e19", "1e18", "253402300800000"};

static void a_score_beyond_all_time_makes_no_baton_due(void **state)
{
    static const hf_claim_args forms[] = {{.doubted = true}, {.doubted = false}};
    (void)state;
    fixture.broken = true;
    for (size_t i = 0; i < HF_COUNT(beyond) * HF_COUNT(forms); i++) {
        const char *score = beyond[i / HF_COUNT(forms)];
        hf_claim_args args = hf_queue_fixture_claim_args("w", 1, 0);
        args.doubted = forms[i % HF_COUNT(forms)].doubted;
        (void)hf_fixture_command(&fixture.redis, "FLUSHALL");
        assert_int_equal(hf_queue_fixture_enqueue(&fixture, "far", -60000), HF_OK);
        (void)hf_fixture_command(&fixture.redis, "ZADD hf:{q}:schedule %s far", score);
        assert_int_equal(hf_queue_fixture_enqueue(&fixture, "near", 0), HF_OK);
        for (int claims = 0; claims < 2; claims++) { /* the second one finds nothing */
            assert_int_equal(hf_queue_fixture_claim_with(&fixture, &args), HF_OK);
            if (fixture.next_ms <= fixture.now_ms || fixture.next_ms > HF_TIME_MAX_MS)
                fail_msg("score %s: the next claim is at %" PRId64, score,
                         fixture.next_ms);
        }
        long long next_wake = hf_queue_fixture_meta(&fixture, "next_wake");
        assert_true(next_wake > fixture.now_ms && next_wake <= HF_TIME_MAX_MS);
        assert_int_equal(hf_queue_fixture_wait(&fixture, 1000), HF_OK);
        assert_true(fixture.which == 0 && fixture.at_ms == next_wake);
    }
}

static void an_idle_worker_stays_idle_with_any_scores(void **state)
{
    (void)state;
    fixture.broken = true;
    hf_queue_fixture_put(&fixture, "far", "ok", -60000);
    (void)hf_fixture_command(&fixture.redis, "ZADD hf:{q}:running inf ghost 1e300 other");
    for (size_t i = 0; i < HF_COUNT(beyond); i++) {
        (void)hf_fixture_command(&fixture.redis, "ZADD hf:{q}:schedule %s far",
                                 beyond[i]);
        (void)hf_fixture_command(&fixture.redis, "HDEL hf:{q}:meta next_wake");
        (void)hf_fixture_command(&fixture.redis, "DEL hf:{q}:wake");
        if (i == 0)
            hf_worker_fixture_start(
                &worker, hf_fixture_url(&fixture.redis),
                &(hf_worker_opts){HF_WORKER_OPTS_INIT, .lease_ms = 1000}, 0);
        uint64_t pulse = hf_worker_pulse(worker.worker);
        long long before = hf_fixture_calls(&fixture.redis, "evalsha");
        EVENTUALLY(15000, hf_worker_pulse(worker.worker) > pulse);
        ALWAYS(1000, hf_fixture_calls(&fixture.redis, "evalsha") - before < LOOPING);
    }
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
}

static void it_is_shown_as_a_time(void **state)
{
    static const char *const scores[] = {"inf", "1e300", "-inf", "-1e300"};
    hf_admin *admin = hf_queue_fixture_admin(&fixture);
    hf_queue_stats stats = {HF_QUEUE_STATS_INIT};
    hf_job_info info = {HF_JOB_INFO_INIT};
    (void)state;
    fixture.broken = true;
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, "far", -60000), HF_OK);
    for (size_t i = 0; i < HF_COUNT(scores); i++) {
        bool late = scores[i][0] != '-';
        (void)hf_fixture_command(&fixture.redis, "ZADD hf:{q}:schedule %s far",
                                 scores[i]);
        assert_int_equal(hf_admin_job(admin, "q", "far", &info, NULL, NULL), HF_OK);
        assert_true(info.due_ms == (late ? HF_TIME_MAX_MS : -HF_TIME_MAX_MS));
        assert_int_equal(hf_admin_stats(admin, "q", &stats, NULL), HF_OK);
        assert_true(stats.next_due_ms == (late ? HF_TIME_MAX_MS : 0));
        assert_true(stats.oldest_ready_ms == (late ? 0 : -HF_TIME_MAX_MS));
    }
    hf_admin_close(admin);
}

/* ---- arguments that are no numbers ---- */

/* In place of each `#` in turn, and the others are what stands behind it. */
typedef struct form {
    const hf_script *script;
    const char *args[WORDS];
} form;

static const form forms[] = {
    {&hf_lua_queue_retry, {"w", "0", "#0", "one", "<fence>", "#0", "no", "#1", "1"}},
    {&hf_lua_queue_release, {"w", "0", "#0", "one", "<fence>", "#0", "unstarted", "no"}},
    {&hf_lua_queue_release, {"w", "0", "0", "one", "<fence>", "#1", "unstarted", ""}},
    {&hf_lua_queue_bury,
     {"w", "0", "#0", "#10", "#1000", "one", "<fence>", "1", "handler", "no", "#1"}},
    {&hf_lua_queue_keep,
     {"w", "0", "#0", "#10", "#1000", "one", "<fence>", "#60000", "{}"}},
    {&hf_lua_queue_requeue, {"0", "#0", "#0", "#0", "#0", "two"}},
    {&hf_lua_queue_limits,
     {"0", "", "max_running", "#1", "rate_limit", "#2", "rate_per", "#3"}},
    {&hf_lua_queue_claim,
     {"w", "2", "1", "#1000", "0", "0", "doubted", "1", "3 10 1000"}},
    {&hf_lua_queue_renew, {"w", "#1000", "0", "0", "0", "one", "<fence>"}},
};

static const char *const no_numbers[] = {"nan", "inf", "1e30", "0x10", "1.5",
                                         "",    " 1",  "1 ",   "x"};

/* Answers whether it was refused as it should be. */
static bool refuses(const form *f, size_t place, const char *word)
{
    const char *argv[4 + WORDS] = {"EVAL", (const char *)f->script->text, "1", "hf:{q}:"};
    size_t n = 4;
    for (size_t i = 0; i < WORDS && f->args[i] != NULL; i++) {
        const char *arg = f->args[i];
        argv[n++] = i == place                    ? word
                    : arg[0] == '#'               ? arg + 1
                    : strcmp(arg, "<fence>") == 0 ? fixture.fence
                                                  : arg;
    }
    redisContext *c = hf_fixture_connect(&fixture.redis);
    redisReply *reply = redisCommandArgv(c, (int)n, argv, NULL);
    assert_non_null(reply);
    bool refused = reply->type == REDIS_REPLY_ERROR && strstr(reply->str, "holdfast: ");
    freeReplyObject(reply);
    redisFree(c);
    return refused;
}

static void check_place(const form *f, size_t place)
{
    char difference[256];
    hf_dump before, after;
    redisContext *c = hf_fixture_connect(&fixture.redis);
    hf_dump_take(&before, c);
    for (size_t i = 0; i < HF_COUNT(no_numbers); i++) {
        bool refused = refuses(f, place, no_numbers[i]);
        hf_dump_take(&after, c);
        if (!hf_dump_same(&before, &after, difference, sizeof difference))
            fail_msg("%s, argument %zu '%s': %s", f->script->name, place, no_numbers[i],
                     difference);
        if (!refused)
            fail_msg("%s takes '%s' as argument %zu", f->script->name, no_numbers[i],
                     place);
        hf_dump_done(&after);
    }
    hf_dump_done(&before);
    redisFree(c);
}

static void what_is_no_number_is_refused_and_changes_nothing(void **state)
{
    (void)state;
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, "one", 1), HF_OK);
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, "two", -60000), HF_OK);
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, "three", 2), HF_OK);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 1, 0), 1);
    for (size_t i = 0; i < HF_COUNT(forms); i++)
        for (size_t place = 0; place < WORDS && forms[i].args[place] != NULL; place++)
            if (forms[i].args[place][0] == '#')
                check_place(&forms[i], place);
}

static void a_rate_without_its_time_is_refused(void **state)
{
    static const form alone = {&hf_lua_queue_limits, {"0", "", "rate_limit", "5"}};
    static const form rate = {&hf_lua_queue_limits,
                              {"0", "", "rate_limit", "5", "rate_per", ""}};
    (void)state;
    assert_true(refuses(&alone, WORDS, ""));
    assert_true(refuses(&rate, 5, "0"));
    assert_false(refuses(&rate, 5, "1000"));
}

#define TEST(name)                                                                       \
    cmocka_unit_test_prestate_setup_teardown(name, hf_queue_fixture_up, down, &fixture)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_delay_beyond_all_time_is_a_hundred_years),
        TEST(a_handler_cannot_ask_for_more_than_a_hundred_years),
        TEST(a_score_beyond_all_time_makes_no_baton_due),
        TEST(an_idle_worker_stays_idle_with_any_scores),
        TEST(it_is_shown_as_a_time),
        TEST(what_is_no_number_is_refused_and_changes_nothing),
        TEST(a_rate_without_its_time_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
