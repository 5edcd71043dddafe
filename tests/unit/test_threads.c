/* test_pool.c - the threads of C handlers: each job is run once, in every state of its
 * thread when the job is passed to it; as many run at once as are allowed; the processors
 * that the user has chosen for threads are kept. */
#define _GNU_SOURCE /* for the processors of threads */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/random.h"
#include "tests/support/eventually.h"
#include "tests/support/skip.h"
#include "worker/runner/threads.h"

enum { THREADS = 4, ROUNDS = 5000, SOON_US = 30, WAIT_MS = 240000 };

/* What a job does; it is in its run's timeout_ms. */
enum { NOTHING, LOOK, CHOOSE, MEET };

static hf_threads *pool;
static unsigned pushed, ended;
static atomic_uint twice, met, missed, running, most;
static cpu_set_t seen, chosen; /* processors of the thread that ran the last job */
static pthread_mutex_t seen_lock = PTHREAD_MUTEX_INITIALIZER;

/* Waits until as many have come as there are threads. */
static void meet(void)
{
    const uint64_t until_ms = hf_test_now_ms() + WAIT_MS / 2;
    unsigned all = atomic_load(&met) / THREADS * THREADS + THREADS;
    atomic_fetch_add(&met, 1);
    while (atomic_load(&met) < all && hf_test_now_ms() < until_ms)
        sched_yield();
    if (atomic_load(&met) < all)
        atomic_fetch_add(&missed, 1);
}

static void note_processors(void)
{
    pthread_mutex_lock(&seen_lock);
    (void)sched_getaffinity(0, sizeof seen, &seen);
    pthread_mutex_unlock(&seen_lock);
}

static void work(hf_run *run)
{
    unsigned now = atomic_fetch_add(&running, 1) + 1;
    if (now > atomic_load(&most))
        atomic_store(&most, now);
    if (atomic_fetch_add(&run->begun_ns, 1) != 0)
        atomic_fetch_add(&twice, 1);
    if (run->timeout_ms == CHOOSE)
        (void)sched_setaffinity(0, sizeof chosen, &chosen);
    if (run->timeout_ms == CHOOSE || run->timeout_ms == LOOK)
        note_processors();
    if (run->timeout_ms == MEET)
        meet();
    atomic_fetch_sub(&running, 1);
}

static void on_returned(void *arg)
{
    (void)arg;
}

static int up(void **state)
{
    (void)state;
    pushed = ended = 0;
    atomic_store(&twice, 0);
    atomic_store(&met, 0);
    atomic_store(&missed, 0);
    atomic_store(&most, 0);
    return hf_threads_new(&pool, THREADS, work, on_returned, NULL) == HF_OK ? 0 : -1;
}

static void collect(void)
{
    hf_run_list list;
    hf_threads_collect(pool, &list);
    for (hf_run *run; (run = hf_run_pop(&list)) != NULL; free(run))
        ended++;
}

static int down(void **state)
{
    (void)state;
    hf_threads_join(pool);
    collect();
    hf_threads_free(pool);
    return 0;
}

static void push(unsigned n, uint32_t what)
{
    hf_run_list list = {.n = 0};
    for (unsigned i = 0; i < n; i++) {
        hf_run *run = calloc(1, sizeof *run + 1);
        assert_non_null(run);
        run->timeout_ms = what;
        hf_run_push(&list, run);
    }
    hf_threads_push(pool, &list);
    pushed += n;
}

/* Tells at once, where EVENTUALLY looks now and then. */
static void await_all(void)
{
    const uint64_t until_ms = hf_test_now_ms() + WAIT_MS;
    for (collect(); ended < pushed; collect()) {
        if (hf_test_now_ms() >= until_ms)
            fail_msg("of %u jobs %u were run", pushed, ended);
        sched_yield();
    }
    assert_int_equal(ended, pushed);
    assert_int_equal(atomic_load(&twice), 0);
}

/* The next job finds the thread of the last one anywhere on its way into sleep. */
static void test_no_job_is_left_by_a_worker_that_goes_to_sleep(void **state)
{
    hf_rng rng;
    (void)state;
    assert_int_equal(hf_random_bytes(&rng.state, sizeof rng.state), HF_OK);
    print_message("seed %llu\n", (unsigned long long)rng.state);
    for (int i = 0; i < ROUNDS; i++) {
        bool one = hf_rng_unit(&rng) < 0.7;
        push(one ? 1 : 1 + (unsigned)(hf_rng_unit(&rng) * 2 * THREADS), NOTHING);
        if (hf_rng_unit(&rng) < 0.7)
            await_all();
        uint64_t until_ns = hf_boot_ns() + (uint64_t)(hf_rng_unit(&rng) * SOON_US * 1000);
        while (hf_boot_ns() < until_ns)
            ;
    }
    await_all();
}

/* None of them ends before all have begun. */
static void test_as_many_run_as_there_are_threads(void **state)
{
    (void)state;
    for (int i = 0; i < ROUNDS / 50; i++) {
        if (i % 2 == 0) {
            push(THREADS, MEET);
        } else {
            for (int k = 0; k < THREADS; k++)
                push(1, MEET);
        }
        await_all();
        assert_int_equal(atomic_load(&missed), 0);
    }
}

static void test_no_more_run_than_may(void **state)
{
    (void)state;
    hf_threads_allow(pool, 2);
    for (int i = 0; i < ROUNDS / 50; i++)
        push(THREADS, LOOK);
    await_all();
    assert_in_range(atomic_load(&most), 1, 2);
    hf_threads_allow(pool, 0);
    push(1, NOTHING);
    ALWAYS(20, (collect(), ended < pushed));
    hf_threads_allow(pool, 1);
    await_all();
}

static void test_a_job_is_taken_back_from_an_idle_pool(void **state)
{
    hf_run_list back;
    (void)state;
    push(1, NOTHING);
    await_all();
    hf_threads_allow(pool, 0);
    push(1, NOTHING);
    hf_threads_take_back(pool, UINT64_MAX, &back);
    assert_int_equal(back.n, 1);
    free(hf_run_pop(&back));
    ended++;
    hf_threads_allow(pool, THREADS);
    push(1, NOTHING);
    await_all();
}

/* A thread that is woken beside ours is tied to one processor for a moment. */
static void test_a_thread_may_run_everywhere_afterwards(void **state)
{
    cpu_set_t ours;
    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof ours, &ours), 0);
    for (int i = 0; i < ROUNDS / 50; i++) {
        push(1, NOTHING);
        await_all();
        hf_test_pause_ms(1); /* whoever ran it sleeps now, or soon: both is fine */
        push(1, NOTHING);
        await_all();
        push(1, LOOK);
        await_all();
        assert_true(CPU_EQUAL(&seen, &ours));
    }
}

/* Its handler chose one: then it is left there. */
static void test_what_a_handler_chooses_stays(void **state)
{
    cpu_set_t ours;
    int last = 0;
    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof ours, &ours), 0);
    if (CPU_COUNT(&ours) < 2)
        HF_SKIP("there is only one processor");
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET((unsigned)cpu, &ours))
            last = cpu;
    CPU_ZERO(&chosen);
    CPU_SET((unsigned)last, &chosen);
    push(1, CHOOSE);
    await_all();
    for (int i = 0; i < ROUNDS / 50; i++) {
        hf_test_pause_ms(1);
        push(1, LOOK);
        await_all();
        assert_true(CPU_EQUAL(&seen, &chosen));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            test_no_job_is_left_by_a_worker_that_goes_to_sleep, up, down),
        cmocka_unit_test_setup_teardown(test_as_many_run_as_there_are_threads, up, down),
        cmocka_unit_test_setup_teardown(test_no_more_run_than_may, up, down),
        cmocka_unit_test_setup_teardown(test_a_job_is_taken_back_from_an_idle_pool, up,
                                        down),
        cmocka_unit_test_setup_teardown(test_a_thread_may_run_everywhere_afterwards, up,
                                        down),
        cmocka_unit_test_setup_teardown(test_what_a_handler_chooses_stays, up, down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
