/* test_worker_replicas.c - workers with wait_replicas: no job starts that replicas do not
 * know of, no lease goes on that they do not have, and the end of a job outlives its
 * primary. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "tests/support/eventually.h"
#include "tests/support/producer.h"
#include "tests/support/proxy.h"
#include "tests/support/replicas.h"
#include "tests/support/worker_fixture.h"

enum { LONG_MS = 60000, LEASE_MS = 2000, MANY = 500 };

static hf_fixture primary, replicas[2];
static hf_worker_fixture worker;
static hf_proxy address;
static char detail[HF_DETAIL_SIZE];

static int up(void **state)
{
    (void)state;
    hf_fixture_start(&primary, &(hf_fixture_options){HF_PRIMARY});
    hf_replicas_start(replicas, HF_COUNT(replicas), &primary);
    hf_proxy_start(&address, primary.socket);
    return 0;
}

static int down(void **state)
{
    (void)state;
    hf_worker_fixture_end(&worker);
    hf_proxy_stop(&address);
    hf_replicas_stop(replicas, HF_COUNT(replicas));
    hf_fixture_stop(&primary);
    return 0;
}

static void start_worker(uint32_t wanted, uint32_t ms)
{
    hf_worker_fixture_start(&worker, address.tcp_url,
                            &(hf_worker_opts){HF_WORKER_OPTS_INIT, .lease_ms = LEASE_MS,
                                              .wait_replicas = wanted,
                                              .wait_replicas_ms = ms},
                            0);
}

static void put(const char *payload, size_t n)
{
    static hf_job jobs[MANY];
    hf_producer *producer =
        hf_test_producer(&primary, (hf_producer_opts){HF_PRODUCER_OPTS_INIT});
    for (size_t i = 0; i < n; i++)
        jobs[i] = (hf_job){HF_JOB_INIT, .queue = "q", .type = "t", .payload = payload,
                           .payload_len = strlen(payload)};
    assert_int_equal(hf_enqueue_wait(producer, jobs, n, NULL, LONG_MS, detail), HF_OK);
    hf_producer_close(producer, NULL, NULL);
}

static long long count(hf_fixture *server, const char *name)
{
    long long n = hf_fixture_number(server, "HGET hf:{q}:meta %s", name);
    return n < 0 ? 0 : n;
}

static bool said(const char *text)
{
    return hf_worker_fixture_said(&worker, text) > 0;
}

static void jobs_run_when_replicas_have_their_claim(void **state)
{
    (void)state;
    start_worker(2, 0);
    put("ok", MANY);
    EVENTUALLY(LONG_MS, count(&primary, "done") == MANY);
    EVENTUALLY(LONG_MS, count(&replicas[0], "done") == MANY);
    long long waits = hf_fixture_calls(&primary, "wait");
    print_message("%d jobs, %lld waits\n", MANY, waits);
    assert_in_range(waits, 1, MANY);
    assert_false(said("replicas"));
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
}

/* The job is claimed, and given back again and again. */
static void without_replicas_no_job_starts_and_none_is_lost(void **state)
{
    (void)state;
    hf_replicas_signal(replicas, HF_COUNT(replicas), SIGSTOP);
    start_worker(1, 200);
    put("ok", 1);
    EVENTUALLY(LONG_MS, said("error replicas do not confirm"));
    EVENTUALLY(LONG_MS, hf_fixture_calls(&primary, "wait") > 5);
    assert_int_equal(atomic_load(&worker.started), 0);
    assert_int_equal(hf_worker_fixture_said(&worker, "error replicas do not confirm"), 1);
    hf_replicas_signal(replicas, HF_COUNT(replicas), SIGCONT);
    EVENTUALLY(LONG_MS, count(&primary, "done") == 1);
    EVENTUALLY(LONG_MS, said("replicas confirm again"));
    assert_int_equal(atomic_load(&worker.started), 1);
    assert_int_equal(count(&primary, "crashed"), 0);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
}

/* The primary goes on to renew it; but another primary would not know. */
static void a_renewal_that_replicas_do_not_have_does_not_count(void **state)
{
    (void)state;
    start_worker(1, 200);
    put("gate", 1);
    EVENTUALLY(LONG_MS, atomic_load(&worker.started) == 1);
    EVENTUALLY(LONG_MS, hf_fixture_calls(&primary, "wait") >= 3);
    assert_false(said("outcome=lost"));
    hf_replicas_signal(replicas, HF_COUNT(replicas), SIGSTOP);
    EVENTUALLY(LONG_MS, said("outcome=lost"));
    hf_replicas_signal(replicas, HF_COUNT(replicas), SIGCONT);
    atomic_store(&worker.gate, true);
    EVENTUALLY(LONG_MS, count(&primary, "done") == 1);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
}

static void an_end_that_replicas_do_not_have_is_told(void **state)
{
    (void)state;
    start_worker(1, 200);
    put("gate", 1);
    EVENTUALLY(LONG_MS, atomic_load(&worker.started) == 1);
    hf_replicas_signal(replicas, HF_COUNT(replicas), SIGSTOP);
    atomic_store(&worker.gate, true);
    EVENTUALLY(LONG_MS,
               said("ended, and not confirmed by replicas queue=q jobs=1 all=1"));
    assert_int_equal(count(&primary, "done"), 1);
    hf_replicas_signal(replicas, HF_COUNT(replicas), SIGCONT);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
}

/* The old primary has executed the completion, and the new one gets it as well: the job
 * does not run twice. */
static void an_end_is_told_to_the_next_primary(void **state)
{
    (void)state;
    start_worker(1, 0);
    put("gate", 1);
    EVENTUALLY(LONG_MS, atomic_load(&worker.started) == 1);
    EVENTUALLY(LONG_MS, hf_fixture_number(&replicas[0], "ZCARD hf:{q}:running") == 1);
    assert_string_equal(hf_fixture_command(&replicas[0], "REPLICAOF NO ONE"), "OK");
    assert_string_equal(hf_fixture_command(&replicas[1], "REPLICAOF 127.0.0.1 %u",
                                           (unsigned)replicas[0].port),
                        "OK");
    atomic_store(&worker.gate, true);
    EVENTUALLY(LONG_MS, count(&primary, "done") == 1);
    hf_fixture_kill(&primary, SIGKILL);
    hf_proxy_move(&address, replicas[0].socket);
    EVENTUALLY(LONG_MS, count(&replicas[0], "done") == 1);
    assert_int_equal(hf_fixture_number(&replicas[0], "ZCARD hf:{q}:running"), 0);
    assert_int_equal(atomic_load(&worker.started), 1);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
}

static void a_worker_stops_while_replicas_are_missing(void **state)
{
    (void)state;
    start_worker(3, LEASE_MS / 2);
    put("ok", 10);
    EVENTUALLY(LONG_MS, hf_fixture_calls(&primary, "wait") > 0);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
    assert_int_equal(atomic_load(&worker.started), 0);
    assert_int_equal(hf_fixture_number(&primary, "ZCARD hf:{q}:schedule"), 10);
}

static void without_wait_replicas_no_replica_is_asked(void **state)
{
    (void)state;
    start_worker(0, 0);
    put("ok", MANY);
    EVENTUALLY(LONG_MS, count(&primary, "done") == MANY);
    assert_int_equal(hf_fixture_calls(&primary, "wait"), 0);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(jobs_run_when_replicas_have_their_claim),
        TEST(without_replicas_no_job_starts_and_none_is_lost),
        TEST(a_renewal_that_replicas_do_not_have_does_not_count),
        TEST(an_end_that_replicas_do_not_have_is_told),
        TEST(an_end_is_told_to_the_next_primary),
        TEST(a_worker_stops_while_replicas_are_missing),
        TEST(without_wait_replicas_no_replica_is_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
