/* test_acl.c - a Redis that does not permit what is asked beside the data: the missing
 * permission is named, and the same is not asked again and again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "holdfast/producer.h"
#include "tests/support/lock_fixture.h"
#include "tests/support/worker_fixture.h"

enum { LONG_MS = 30000, WATCHED_MS = 1000, REFUSALS_MAX = 10, PROMPT_MS = 3000 };

static hf_lock_fixture fixture; /* its clients come with the tests that need them */
static hf_fixture *const redis = &fixture.redis;
static hf_worker_fixture worker;
static char detail[HF_DETAIL_SIZE];

static int up(void **state)
{
    (void)state;
    hf_fixture_start(redis, NULL);
    return 0;
}

static int down(void **state)
{
    (void)state;
    hf_worker_fixture_end(&worker);
    hf_fixture_stop(redis);
    return 0;
}

static void permit(const char *what)
{
    assert_string_equal(hf_fixture_command(redis, "ACL SETUSER default %s", what), "OK");
}

static long long counted(const char *field)
{
    const char *at = strstr(hf_fixture_command(redis, "INFO all"), field);
    return at == NULL ? 0 : strtoll(at + strlen(field), NULL, 10);
}

/* How often Redis has refused a command, and has run a script or has not known it. */
static long long refused(void)
{
    return counted("errorstat_NOPERM:count=");
}

static long long scripts(void)
{
    return counted("cmdstat_evalsha:calls=");
}

/* ---- SCRIPT ---- */

static void without_script_a_producer_is_told_so(void **state)
{
    (void)state;
    hf_producer *producer;
    const hf_producer_opts opts = {HF_PRODUCER_OPTS_INIT,
                                   .server = HF_SERVER(.url = redis->url),
                                   .deadline_ms = LONG_MS};
    const hf_job job = {HF_JOB_INIT, .queue = "q", .type = "t"};
    permit("-script");
    assert_int_equal(hf_producer_open(&producer, &opts, detail), HF_OK);
    assert_int_equal(hf_enqueue_wait(producer, &job, 1, NULL, 0, detail), HF_AUTH);
    assert_memory_equal(detail, "NOPERM ", 7);
    assert_non_null(strstr(detail, "script"));
    assert_true(scripts() <= REFUSALS_MAX);
    permit("+script"); /* on the same connection */
    if (hf_enqueue_wait(producer, &job, 1, NULL, 0, detail) != HF_OK)
        assert_int_equal(hf_enqueue_wait(producer, &job, 1, NULL, 0, detail), HF_OK);
    hf_producer_close(producer, NULL, NULL);
}

static void without_script_a_lock_is_refused(void **state)
{
    (void)state;
    permit("-script");
    hf_lock_client *locks = hf_lock_fixture_open(&fixture, redis->url);
    hf_lock_refused(&fixture, locks, "n",
                    (hf_lock_opts){HF_LOCK_OPTS_INIT, .wait_ms = LONG_MS}, HF_AUTH);
    assert_non_null(strstr(fixture.detail, "script"));
    assert_true(scripts() <= REFUSALS_MAX);
    hf_lock_client_close(locks, NULL, NULL);
}

static void without_script_a_worker_ends(void **state)
{
    (void)state;
    permit("-script");
    hf_worker_fixture_start(&worker, redis->url, &hf_brief_lease, 0);
    EVENTUALLY(LONG_MS, atomic_load(&worker.ended));
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_AUTH);
    assert_true(scripts() <= 2 * REFUSALS_MAX);
}

/* It serves, and only what it has not sent before is missing. */
static void a_worker_that_loses_script_asks_less_often(void **state)
{
    (void)state;
    hf_worker_fixture_start(&worker, redis->url, &hf_brief_lease, 0);
    EVENTUALLY(LONG_MS, hf_worker_pulse(worker.worker) > 0);
    permit("-script");
    assert_non_null(strstr(hf_fixture_command(redis, "SCRIPT FLUSH"), "(error) NOPERM"));
    permit("+script|flush");
    assert_string_equal(hf_fixture_command(redis, "SCRIPT FLUSH"), "OK");
    long long before = scripts();
    EVENTUALLY(LONG_MS, hf_worker_fixture_said(&worker, "script") > 0);
    ALWAYS(WATCHED_MS, scripts() - before < 200);
    permit("+script");
    uint64_t pulse = hf_worker_pulse(worker.worker);
    EVENTUALLY(LONG_MS, hf_worker_pulse(worker.worker) > pulse);
}

/* ---- CLIENT ---- */

/* Redis before 7.0 cannot take one subcommand away; it can only give some. */
static void permit_client(bool id, bool kill, bool unblock)
{
    permit("-client");
    if (id)
        permit("+client|id");
    if (kill)
        permit("+client|kill");
    if (unblock)
        permit("+client|unblock");
}

static bool is_blocked(void)
{
    return strstr(hf_fixture_command(redis, "INFO clients"), "blocked_clients:1") != NULL;
}

/* A worker that is quiet ends its wait for jobs; one that may not waits to its end. */
static void without_unblock_a_worker_does_not_try_again_and_again(void **state)
{
    (void)state;
    hf_worker_fixture_start(&worker, redis->url,
                            &(hf_worker_opts){HF_WORKER_OPTS_INIT, .lease_ms = LONG_MS},
                            0);
    EVENTUALLY(LONG_MS, is_blocked());
    permit_client(true, true, false);
    long long before = refused();
    hf_worker_quiet(worker.worker);
    EVENTUALLY(LONG_MS, refused() > before);
    ALWAYS(WATCHED_MS, refused() - before <= REFUSALS_MAX);
    assert_int_equal(
        hf_worker_fixture_said(
            &worker, "warn Redis does not permit a command command=CLIENT UNBLOCK"),
        1);
}

/* It waits for half a second at a time. */
static void without_unblock_a_worker_stops_soon(void **state)
{
    (void)state;
    permit_client(true, true, false);
    hf_worker_fixture_start(&worker, redis->url,
                            &(hf_worker_opts){HF_WORKER_OPTS_INIT, .lease_ms = LONG_MS},
                            0);
    EVENTUALLY(LONG_MS, is_blocked());
    assert_int_equal(
        hf_worker_fixture_said(&worker, "permit a command command=CLIENT UNBL"), 1);
    uint64_t start = hf_test_fair_ms();
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
    uint64_t took = hf_test_fair_ms() - start;
    print_message("stopped in %d ms\n", (int)took);
    assert_true(took < PROMPT_MS / 2); /* a wait may be 5000 */
}

/* A client that waits in two tags, one after the other, hears of both. */
static void without_unblock_a_lock_is_granted_soon(void **state)
{
    (void)state;
    static const hf_lock_opts patient = {HF_LOCK_OPTS_INIT, .lease_ms = LONG_MS};
    hf_lock_waiter first, second;
    permit_client(true, true, false);
    hf_lock_client *a = hf_lock_fixture_open(&fixture, redis->url);
    hf_lock_client *b = hf_lock_fixture_open(&fixture, redis->url);
    hf_lock *one = hf_lock_must(&fixture, b, "one", patient);
    hf_lock *two = hf_lock_must(&fixture, b, "two", patient);
    hf_lock_wait_begin(&first, &fixture, a, "one", patient);
    EVENTUALLY(LONG_MS, is_blocked());
    hf_lock_wait_begin(&second, &fixture, a, "two", patient);
    uint64_t start = hf_test_fair_ms();
    hf_lock_released(two);
    hf_lock_wait_end(&second);
    assert_int_equal(second.err, HF_OK);
    assert_true(hf_test_fair_ms() - start < PROMPT_MS); /* a third of a lease is 10000 */
    hf_lock_released(one);
    hf_lock_wait_released(&first);
    hf_lock_released(second.lock);
    hf_lock_client_close(a, NULL, NULL);
    hf_lock_client_close(b, NULL, NULL);
}

/* HELLO tells the id of a connection. Without INFO each Redis that comes back may be
 * another one. */
static void what_a_worker_can_do_without_is_said_once(void **state)
{
    (void)state;
    permit_client(false, true, true);
    permit("-info");
    hf_worker_fixture_start(&worker, redis->url, &hf_brief_lease, 0);
    EVENTUALLY(LONG_MS, hf_worker_pulse(worker.worker) > 1);
    assert_int_equal(hf_worker_fixture_said(&worker, "permit a command command=INFO"), 1);
    assert_int_equal(hf_worker_fixture_said(&worker, "has saved no snapshot"), 0);
    assert_int_equal(hf_fixture_number(redis, "CLIENT KILL TYPE normal SKIPME yes") > 0,
                     1);
    EVENTUALLY(LONG_MS, hf_worker_fixture_said(&worker, "Redis is back") == 1);
    assert_int_equal(hf_worker_fixture_said(&worker, "Redis may be another one"), 1);
    permit("+info");
    for (int i = 0; i < 2; i++) { /* the first has an id, and the second would kill it */
        size_t back = hf_worker_fixture_said(&worker, "Redis is back");
        permit("+client|kill");
        assert_true(hf_fixture_number(redis, "CLIENT KILL TYPE normal SKIPME yes") > 0);
        permit_client(false, false, true);
        EVENTUALLY(LONG_MS, hf_worker_fixture_said(&worker, "Redis is back") > back);
    }
    EVENTUALLY(LONG_MS, hf_worker_fixture_said(
                            &worker, "permit a command command=CLIENT KILL") == 1);
    assert_int_equal(hf_worker_fixture_said(&worker, "permit a command command=INFO"), 1);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, up, down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(without_script_a_producer_is_told_so),
        CASE(without_script_a_lock_is_refused),
        CASE(without_script_a_worker_ends),
        CASE(a_worker_that_loses_script_asks_less_often),
        CASE(without_unblock_a_worker_does_not_try_again_and_again),
        CASE(without_unblock_a_worker_stops_soon),
        CASE(without_unblock_a_lock_is_granted_soon),
        CASE(what_a_worker_can_do_without_is_said_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
