/* test_producer_replicas.c - producers with wait_replicas: what counts as accepted, what
 * is told when replicas are missing, and what a failover leaves of it. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "holdfast/producer.h"
#include "tests/support/eventually.h"
#include "tests/support/producer.h"
#include "tests/support/proxy.h"
#include "tests/support/replicas.h"

enum {
    LONG_MS = 60000,
    SHORT_MS = 400,
    MANY = 2000,
    LATE_CALLS = 60 /* more than the numbers that Redis remembers one by one */
};

static hf_fixture primary, replicas[2];
static hf_producer *producer;
static char detail[HF_DETAIL_SIZE];

static int up(void **state)
{
    (void)state;
    hf_fixture_start(&primary, &(hf_fixture_options){HF_PRIMARY});
    hf_replicas_start(replicas, HF_COUNT(replicas), &primary);
    return 0;
}

static int down(void **state)
{
    (void)state;
    hf_producer_close(producer, NULL, NULL);
    producer = NULL;
    hf_replicas_stop(replicas, HF_COUNT(replicas));
    hf_fixture_stop(&primary);
    return 0;
}

static void open_producer(uint32_t wanted, uint32_t ms)
{
    producer = hf_test_producer(
        &primary, (hf_producer_opts){HF_PRODUCER_OPTS_INIT, .deadline_ms = LONG_MS,
                                     .wait_replicas = wanted, .wait_replicas_ms = ms});
}

static hf_err put(const char *id, hf_enqueue_result *result)
{
    const hf_job job = {HF_JOB_INIT, .queue = "q", .type = "t", .id = id};
    *result = (hf_enqueue_result){HF_ENQUEUE_RESULT_INIT};
    return hf_enqueue_wait(producer, &job, 1, result, 0, detail);
}

static long long has(hf_fixture *server, const char *id)
{
    return hf_fixture_number(server, "HEXISTS hf:{q}:jobs %s", id);
}

static void an_accepted_job_is_on_the_replicas(void **state)
{
    hf_enqueue_result result;
    (void)state;
    open_producer(2, 0);
    assert_int_equal(put("a", &result), HF_OK);
    assert_int_equal(result.err, HF_OK);
    assert_true(result.accepted_ms > 0);
    for (size_t i = 0; i < HF_COUNT(replicas); i++)
        assert_int_equal(has(&replicas[i], "a"), 1);
    /* What exists is kept until then as well. */
    assert_int_equal(put("a", &result), HF_OK);
    assert_int_equal(result.err, HF_EXISTS);
}

static void too_few_replicas_are_told_and_the_job_is_there(void **state)
{
    hf_enqueue_result result;
    (void)state;
    open_producer(3, SHORT_MS);
    assert_int_equal(put(NULL, &result), HF_UNCONFIRMED);
    assert_int_equal(result.err, HF_UNCONFIRMED);
    assert_non_null(strstr(detail, "of 3 replicas"));
    assert_int_equal(has(&primary, result.id), 1);
}

/* Without a time of its own it waits until the deadline of the call. */
static void a_call_does_not_wait_longer_than_its_deadline(void **state)
{
    hf_enqueue_result result = {HF_ENQUEUE_RESULT_INIT};
    const hf_job job = {HF_JOB_INIT, .queue = "q", .type = "t"};
    (void)state;
    open_producer(3, 0);
    uint64_t start_ms = hf_test_fair_ms();
    assert_int_equal(hf_enqueue_wait(producer, &job, 1, &result, SHORT_MS, detail),
                     HF_UNCONFIRMED);
    assert_non_null(strstr(detail, "replicas"));
    assert_true(hf_test_fair_ms() - start_ms < LONG_MS / 3);
}

static void a_job_that_is_handed_in_again_is_accepted_once(void **state)
{
    hf_enqueue_result result;
    const hf_job job = {HF_JOB_INIT, .queue = "n", .type = "t"};
    (void)state;
    hf_replicas_signal(replicas, HF_COUNT(replicas), SIGSTOP);
    open_producer(2, SHORT_MS);
    assert_int_equal(put("a", &result), HF_UNCONFIRMED);
    hf_replicas_signal(replicas, HF_COUNT(replicas), SIGCONT);
    EVENTUALLY(LONG_MS, put("a", &result) == HF_OK);
    assert_int_equal(result.err, HF_EXISTS);
    assert_int_equal(hf_fixture_number(&primary, "ZCARD hf:{q}:schedule"), 1);
    hf_producer_close(producer, NULL, NULL);

    hf_replicas_signal(replicas, HF_COUNT(replicas), SIGSTOP);
    open_producer(2, SHORT_MS);
    result = (hf_enqueue_result){HF_ENQUEUE_RESULT_INIT};
    assert_int_equal(hf_enqueue_numbered(producer, &job, 1, 1, 0, &result, detail),
                     HF_UNCONFIRMED);
    assert_int_equal(hf_enqueue_numbered(producer, &job, 1, 2, 1, &result, detail),
                     HF_INVALID);
    hf_replicas_signal(replicas, HF_COUNT(replicas), SIGCONT);
    EVENTUALLY(LONG_MS,
               hf_enqueue_numbered(producer, &job, 1, 1, 0, &result, detail) == HF_OK);
    assert_int_equal(hf_fixture_number(&primary, "ZCARD hf:{n}:schedule"), 1);
}

/* ---- how often it asks ---- */

static atomic_uint answers, accepted;

static void on_result(const hf_enqueue_result *result, const char *why, void *arg)
{
    (void)why, (void)arg;
    if (result->err == HF_OK)
        atomic_fetch_add(&accepted, 1);
    atomic_fetch_add(&answers, 1);
}

static void put_later(void)
{
    const hf_job job = {HF_JOB_INIT, .queue = "q", .type = "t"};
    assert_int_equal(hf_enqueue(producer, &job, on_result, NULL, detail), HF_OK);
}

static void many_jobs_share_a_wait(void **state)
{
    (void)state;
    atomic_store(&answers, 0);
    atomic_store(&accepted, 0);
    open_producer(2, 0);
    for (unsigned i = 0; i < MANY; i++)
        put_later();
    EVENTUALLY(LONG_MS, atomic_load(&answers) == MANY);
    assert_int_equal(atomic_load(&accepted), MANY);
    long long n = hf_fixture_calls(&primary, "wait");
    print_message("%d jobs, %lld waits\n", MANY, n);
    assert_in_range(n, 1, MANY / 20);
}

static void without_wait_replicas_nothing_is_asked(void **state)
{
    hf_enqueue_result result;
    (void)state;
    open_producer(0, 0);
    assert_int_equal(put("a", &result), HF_OK);
    assert_int_equal(hf_fixture_calls(&primary, "wait"), 0);
    const char *list = hf_fixture_command(&primary, "CLIENT LIST TYPE normal");
    unsigned connections = 0;
    for (const char *at = list; (at = strstr(at, "id=")) != NULL; at++)
        connections++;
    assert_int_equal(connections, 2); /* its own, and this test's */
}

/* The first may have to be sent again, under its number, whatever came after it. */
static void one_that_waits_for_long_stays_in_the_span_of_numbers(void **state)
{
    const hf_job job = {HF_JOB_INIT, .queue = "q", .type = "t"};
    (void)state;
    atomic_store(&answers, 0);
    atomic_store(&accepted, 0);
    hf_replicas_signal(replicas, HF_COUNT(replicas), SIGSTOP);
    open_producer(2, 0);
    put_later();
    EVENTUALLY(LONG_MS, hf_fixture_number(&primary, "ZCARD hf:{q}:schedule") == 1);
    for (unsigned i = 0; i < LATE_CALLS; i++) {
        hf_err err = hf_enqueue_wait(producer, &job, 1, NULL, 50, detail);
        assert_true(err == HF_UNCONFIRMED || err == HF_TIMEOUT || err == HF_UNSURE);
    }
    assert_int_equal(atomic_load(&answers), 0);
    hf_replicas_signal(replicas, HF_COUNT(replicas), SIGCONT);
    EVENTUALLY(LONG_MS, atomic_load(&answers) == 1);
    assert_int_equal(atomic_load(&accepted), 1);
}

/* ---- a failover ---- */

typedef struct call {
    hf_err err;
    atomic_bool over;
} call;

static void *put_in_thread(void *arg)
{
    call *c = arg;
    hf_enqueue_result result;
    c->err = put("a", &result);
    atomic_store(&c->over, true);
    return NULL;
}

/* The primary has the job and its replicas do not: the new primary gets it as well, and
 * once only. */
static void a_failover_during_the_wait_loses_nothing(void **state)
{
    hf_proxy address;
    pthread_t thread;
    call c = {.err = HF_OK};
    (void)state;
    hf_proxy_start(&address, primary.socket);
    const hf_producer_opts opts = {HF_PRODUCER_OPTS_INIT,
                                   .server = HF_SERVER(.url = address.tcp_url),
                                   .deadline_ms = LONG_MS, .wait_replicas = 1};
    assert_int_equal(hf_producer_open(&producer, &opts, detail), HF_OK);
    hf_enqueue_result result;
    assert_int_equal(put("first", &result), HF_OK);
    EVENTUALLY(LONG_MS, has(&replicas[0], "first") == 1);
    assert_string_equal(hf_fixture_command(&replicas[0], "REPLICAOF NO ONE"), "OK");
    assert_string_equal(hf_fixture_command(&replicas[1], "REPLICAOF 127.0.0.1 %u",
                                           (unsigned)replicas[0].port),
                        "OK");
    EVENTUALLY(LONG_MS, hf_replicas_online(&replicas[0]) == 1);
    assert_int_equal(pthread_create(&thread, NULL, put_in_thread, &c), 0);
    EVENTUALLY(LONG_MS, has(&primary, "a") == 1);
    assert_false(atomic_load(&c.over));
    hf_fixture_kill(&primary, SIGKILL);
    hf_proxy_move(&address, replicas[0].socket);
    pthread_join(thread, NULL);
    if (c.err != HF_OK)
        fail_msg("%s: %s", hf_err_name(c.err), detail);
    assert_int_equal(has(&replicas[0], "first") + has(&replicas[0], "a"), 2);
    assert_int_equal(has(&replicas[1], "a"), 1);
    assert_int_equal(hf_fixture_number(&replicas[0], "ZCARD hf:{q}:schedule"), 2);
    hf_producer_close(producer, NULL, NULL);
    producer = NULL;
    hf_proxy_stop(&address);
}

static void bad_options_are_named(void **state)
{
    (void)state;
    hf_producer_opts opts = {HF_PRODUCER_OPTS_INIT, .wait_replicas = HF_REPLICAS_MAX + 1};
    assert_int_equal(hf_producer_open(&producer, &opts, detail), HF_INVALID);
    assert_non_null(strstr(detail, "wait_replicas"));
    opts = (hf_producer_opts){HF_PRODUCER_OPTS_INIT, .wait_replicas_ms = 1};
    assert_int_equal(hf_producer_open(&producer, &opts, detail), HF_INVALID);
    assert_non_null(strstr(detail, "wait_replicas_ms"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_accepted_job_is_on_the_replicas),
        TEST(too_few_replicas_are_told_and_the_job_is_there),
        TEST(a_call_does_not_wait_longer_than_its_deadline),
        TEST(a_job_that_is_handed_in_again_is_accepted_once),
        TEST(many_jobs_share_a_wait),
        TEST(without_wait_replicas_nothing_is_asked),
        TEST(one_that_waits_for_long_stays_in_the_span_of_numbers),
        TEST(a_failover_during_the_wait_loses_nothing),
        cmocka_unit_test(bad_options_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
