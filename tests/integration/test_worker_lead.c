/* test_worker_lead.c - a worker that has nothing to do, and whose handlers are short: the
 * thread that hears of a job runs it itself. And when that handler is not short after
 * all: the loop goes on without it, to its end if that is asked for. */
#include <stdio.h>
#include <string.h>

#include "tests/support/eventually.h"
#include "tests/support/queue_rig.h"
#include "tests/support/worker_rig.h"

enum { LONG_MS = 30000, TRIES = 20000, JOBS = 300 };

static hf_rig queue;
static hf_worker_rig worker;
static atomic_int ran, led; /* jobs; those whose thread had heard of them */
static atomic_int stuck;    /* a handler that was led waits for the gate */
static atomic_bool gate, lost, stopping;

static int up(void **state)
{
    (void)state;
    hf_rig_start(&queue, NULL);
    atomic_store(&ran, 0);
    atomic_store(&led, 0);
    atomic_store(&stuck, 0);
    atomic_store(&gate, false);
    atomic_store(&lost, false);
    atomic_store(&stopping, false);
    return 0;
}

static int down(void **state)
{
    (void)state;
    atomic_store(&gate, true);
    hf_worker_rig_end(&worker);
    hf_rig_stop(&queue);
    return 0;
}

/* "stay" waits for the gate, if it is run by the thread that turns the loop. */
static hf_verdict handle(hf_run *run, void *arg)
{
    size_t len;
    const char *what = hf_run_payload(run, &len);
    (void)arg;
    if (atomic_load(&worker.woken) == (unsigned long)pthread_self()) {
        atomic_fetch_add(&led, 1);
        if (len == 4 && memcmp(what, "stay", 4) == 0) {
            atomic_fetch_add(&stuck, 1);
            while (!atomic_load(&gate))
                hf_test_pause_ms(1);
            atomic_store(&lost, hf_run_lost(run));
            atomic_store(&stopping, hf_run_stopping(run));
        }
    }
    atomic_fetch_add(&ran, 1);
    return HF_VERDICT_DONE;
}

static void start(void)
{
    hf_worker_rig_start_handler(&worker, hf_fixture_url(&queue.redis), 0, handle, NULL);
}

static void put(const char *payload)
{
    static int n;
    char id[32];
    (void)snprintf(id, sizeof id, "job-%06d", n++);
    hf_rig_put(&queue, id, payload, 0);
}

/* One job after the other, each when the one before was run, or stays. */
static void put_until(atomic_int *count, const char *payload)
{
    for (int i = 0; i < TRIES && atomic_load(count) == 0; i++) {
        int before = atomic_load(&ran);
        put(payload);
        EVENTUALLY(LONG_MS, atomic_load(&ran) > before || atomic_load(&stuck) > 0);
    }
    assert_true(atomic_load(count) > 0);
}

static void assert_all_done(void)
{
    EVENTUALLY(LONG_MS, hf_fixture_number(&queue.redis, "HLEN hf:{q}:jobs") == 0);
}

/* ---- the tests ---- */

static void who_hears_of_a_job_runs_it(void **state)
{
    (void)state;
    start();
    put_until(&led, "short");
    assert_all_done();
    assert_int_equal(hf_worker_rig_stop(&worker), HF_OK);
}

/* One by one, some at once, and one right behind the other. */
static void each_job_is_run_once_whoever_turns_the_loop(void **state)
{
    (void)state;
    start();
    for (int i = 0; i < JOBS; i++) {
        put("short");
        if (i % 10 != 0)
            EVENTUALLY(LONG_MS, atomic_load(&ran) > i - i % 3);
    }
    EVENTUALLY(LONG_MS, atomic_load(&ran) >= JOBS);
    assert_all_done();
    assert_int_equal(hf_worker_rig_stop(&worker), HF_OK);
    assert_int_equal(atomic_load(&ran), JOBS);
}

/* Longer than its lease: what it holds is renewed, others are run, and it ends well. */
static void a_handler_that_stays_away_holds_up_nothing(void **state)
{
    (void)state;
    start();
    put_until(&stuck, "stay");
    int before = atomic_load(&ran);
    for (int i = 1; i <= 3; i++) {
        put("short");
        EVENTUALLY(LONG_MS, atomic_load(&ran) == before + i);
    }
    hf_test_pause_ms(1500);
    atomic_store(&gate, true);
    assert_all_done();
    assert_false(atomic_load(&lost));
    assert_int_equal(hf_worker_rig_stop(&worker), HF_OK);
    assert_int_equal(hf_worker_rig_said(&worker, "outcome=lost"), 0);
}

/* It is asked to stop, as any other is; after the second call it is waited for no more.
 */
static void the_worker_comes_back_without_it(void **state)
{
    (void)state;
    start();
    put_until(&stuck, "stay");
    hf_worker_stop(worker.worker);
    hf_worker_stop(worker.worker);
    EVENTUALLY(LONG_MS, atomic_load(&worker.ended));
    assert_int_equal(hf_worker_unreturned(worker.worker), 1);
    assert_true(hf_fixture_number(&queue.redis, "ZCARD hf:{q}:schedule") >= 1);
    atomic_store(&gate, true);
    assert_int_equal(hf_worker_rig_stop(&worker), HF_OK);
    assert_true(atomic_load(&stopping));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(who_hears_of_a_job_runs_it, up, down),
        cmocka_unit_test_setup_teardown(each_job_is_run_once_whoever_turns_the_loop, up,
                                        down),
        cmocka_unit_test_setup_teardown(a_handler_that_stays_away_holds_up_nothing, up,
                                        down),
        cmocka_unit_test_setup_teardown(the_worker_comes_back_without_it, up, down),
    };
    return cmocka_run_group_tests_name("worker_lead", tests, NULL, NULL);
}
