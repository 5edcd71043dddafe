/* test_worker_lead.c - a worker that has nothing to do, and whose handlers are short: the
 * thread that hears of a job runs it itself. And when that handler is not short after
 * all: the loop goes on without it, to its end if that is asked for. */
#define _GNU_SOURCE /* syscall() */
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "tests/support/eventually.h"
#include "tests/support/queue_fixture.h"
#include "tests/support/worker_fixture.h"

enum { LONG_MS = 30000, LEASE_MS = 3000, TRIES = 20000, JOBS = 300, ROUNDS = 20 };

static hf_queue_fixture queue;
static hf_worker_fixture worker;
static atomic_int ran, led; /* jobs; those whose thread had heard of them */
static atomic_int stuck;    /* a handler that was led waits for the gate */
static atomic_bool gate, lost, stopping;
static atomic_bool armed, held, let_go; /* see timerfd_settime() */

static int up(void **state)
{
    (void)state;
    hf_queue_fixture_start(&queue, NULL);
    atomic_store(&ran, 0);
    atomic_store(&led, 0);
    atomic_store(&stuck, 0);
    atomic_store(&gate, false);
    atomic_store(&lost, false);
    atomic_store(&stopping, false);
    atomic_store(&armed, false);
    return 0;
}

static int down(void **state)
{
    (void)state;
    atomic_store(&gate, true);
    atomic_store(&let_go, true);
    hf_worker_fixture_end(&worker);
    hf_queue_fixture_stop(&queue);
    return 0;
}

/* Instead of the C library's, in this program: when it is armed, who gives the loop back
 * is held up while it sets the bell, which it has ring at once. */
int timerfd_settime(int fd, int flags, const struct itimerspec *in,
                    struct itimerspec *before)
{
    bool at_once = in->it_value.tv_sec == 0 && in->it_value.tv_nsec == 1;
    if (at_once && atomic_exchange(&armed, false)) {
        atomic_store(&held, true);
        while (!atomic_load(&let_go))
            hf_test_pause_ms(1);
    }
    return (int)syscall(SYS_timerfd_settime, fd, flags, in, before);
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
    hf_worker_fixture_start_own(
        &worker, hf_fixture_url(&queue.redis),
        &(hf_worker_opts){HF_WORKER_OPTS_INIT, .lease_ms = LEASE_MS}, 0, handle, NULL);
}

static void put(const char *payload)
{
    static int n;
    char id[32];
    (void)snprintf(id, sizeof id, "job-%06d", n++);
    hf_queue_fixture_put(&queue, id, payload, 0);
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

/* The leader leaves two that come at once to others, and gives the loop back. */
static void put_two(void)
{
    static int n;
    static const char record[] = "{\"v\":1,\"type\":\"t\",\"created\":1}\nshort";
    const hf_enqueue_args args = {.producer = ""};
    char ids[2][32];
    hf_enqueue_item items[2];
    for (int i = 0; i < 2; i++) {
        (void)snprintf(ids[i], sizeof ids[i], "two-%06d", n++);
        items[i] = (hf_enqueue_item){ids[i], 0, {record, sizeof record - 1}};
    }
    assert_int_equal(hf_queue_fixture_enqueue_items(&queue, &args, items, 2), HF_OK);
}

static void assert_all_done(void)
{
    EVENTUALLY(LONG_MS, hf_fixture_number(&queue.redis, "HLEN hf:{q}:jobs") == 0);
}

/* ---- the tests ---- */

static void the_thread_that_hears_of_a_job_runs_it(void **state)
{
    (void)state;
    start();
    put_until(&led, "short");
    assert_all_done();
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
}

/* One by one, some at once, and one right behind the other. */
static void each_job_is_run_once_with_any_loop_owner(void **state)
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
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
    assert_int_equal(atomic_load(&ran), JOBS);
}

/* While its bell is being set, nobody else can have it, although the bell that was set
 * for the job rings meanwhile. */
static void a_loop_that_is_given_back_has_its_bell_set(void **state)
{
    (void)state;
    start();
    put_until(&led, "short");
    for (int round = 0; round < ROUNDS; round++) {
        int before = atomic_load(&ran);
        atomic_store(&held, false);
        atomic_store(&let_go, false);
        atomic_store(&armed, true);
        put_two();
        EVENTUALLY(LONG_MS, atomic_load(&ran) == before + 2 || atomic_load(&held));
        for (int ms = 0; ms < 100 && atomic_load(&ran) < before + 2; ms++)
            hf_test_pause_ms(1);
        if (atomic_exchange(&armed, false) || atomic_load(&ran) < before + 2) {
            atomic_store(&let_go, true); /* it gave nothing back, or before they came */
            EVENTUALLY(LONG_MS, atomic_load(&ran) == before + 2);
            continue;
        }
        EVENTUALLY(LONG_MS, atomic_load(&held));
        put("short");
        ALWAYS(50, atomic_load(&ran) == before + 2);
        atomic_store(&let_go, true);
        EVENTUALLY(LONG_MS, atomic_load(&ran) == before + 3);
    }
    assert_all_done();
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
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
    hf_test_pause_ms(LEASE_MS * 3 / 2);
    atomic_store(&gate, true);
    assert_all_done();
    assert_false(atomic_load(&lost));
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
    assert_int_equal(hf_worker_fixture_said(&worker, "outcome=lost"), 0);
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
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
    assert_true(atomic_load(&stopping));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_thread_that_hears_of_a_job_runs_it, up, down),
        cmocka_unit_test_setup_teardown(each_job_is_run_once_with_any_loop_owner, up,
                                        down),
        cmocka_unit_test_setup_teardown(a_loop_that_is_given_back_has_its_bell_set, up,
                                        down),
        cmocka_unit_test_setup_teardown(a_handler_that_stays_away_holds_up_nothing, up,
                                        down),
        cmocka_unit_test_setup_teardown(the_worker_comes_back_without_it, up, down),
    };
    return cmocka_run_group_tests_name("worker_lead", tests, NULL, NULL);
}
