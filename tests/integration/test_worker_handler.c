/* test_worker_handler.c - what a C handler learns of its run, how it is asked to stop,
 * and what it says beside its verdict. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/eventually.h"
#include "tests/support/queue_fixture.h"
#include "tests/support/worker_fixture.h"

enum { LEASE_MS = 6000 };

static hf_queue_fixture queue;
static hf_worker_fixture worker;

/* What the handler saw; read when `returned` says that it is there. */
static struct seen {
    char id[HF_ID_SIZE], type[HF_ID_SIZE], queue[HF_ID_SIZE], payload[32];
    uint32_t attempt;
    uint64_t fence;
    int64_t remaining_ms;
    bool lost, timed_out, cancelled;
} seen;
static atomic_int started, returned, told, told_at_once;

static int up(void **state)
{
    (void)state;
    hf_queue_fixture_start(&queue, NULL);
    seen = (struct seen){.attempt = 0};
    atomic_store(&started, 0);
    atomic_store(&returned, 0);
    atomic_store(&told, 0);
    atomic_store(&told_at_once, 0);
    return 0;
}

static int down(void **state)
{
    (void)state;
    hf_worker_fixture_end(&worker);
    hf_queue_fixture_stop(&queue);
    return 0;
}

static void count(void *arg)
{
    atomic_fetch_add((atomic_int *)arg, 1);
}

static void note(hf_run *run)
{
    size_t len;
    const char *payload = hf_run_payload(run, &len);
    (void)snprintf(seen.id, sizeof seen.id, "%s", hf_run_id(run));
    (void)snprintf(seen.type, sizeof seen.type, "%s", hf_run_type(run));
    (void)snprintf(seen.queue, sizeof seen.queue, "%s", hf_run_queue(run));
    (void)snprintf(seen.payload, sizeof seen.payload, "%.*s", (int)len, payload);
    seen.attempt = hf_run_attempt(run);
    seen.fence = hf_run_fence(run);
    seen.remaining_ms = hf_run_remaining_ms(run);
    seen.lost = hf_run_lost(run);
    seen.timed_out = hf_run_timed_out(run);
    seen.cancelled = hf_run_cancelled(run);
}

static void start(uint32_t timeout_ms, hf_handler_fn fn)
{
    const hf_worker_opts opts = {HF_WORKER_OPTS_INIT, .lease_ms = LEASE_MS};
    hf_worker_fixture_start_own(&worker, hf_fixture_url(&queue.redis), &opts, timeout_ms,
                                fn, NULL);
    hf_queue_fixture_put(&queue, "a", "hello", 0);
}

/* ---- what it knows ---- */

static hf_verdict look(hf_run *run, void *arg)
{
    (void)arg;
    note(run);
    hf_run_on_stop(run, count, &told);
    atomic_fetch_add(&returned, 1);
    return HF_VERDICT_RETRY;
}

static void a_handler_knows_its_run(void **state)
{
    (void)state;
    start(0, look);
    EVENTUALLY(15000, atomic_load(&returned) >= 2); /* the first one failed */
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
    assert_string_equal(seen.id, "a");
    assert_string_equal(seen.type, "t");
    assert_string_equal(seen.queue, "q");
    assert_string_equal(seen.payload, "hello");
    assert_true(seen.attempt >= 2);
    long long fence = hf_queue_fixture_meta(&queue, "fence");
    assert_true(seen.fence > 0 && seen.fence <= (uint64_t)fence);
    assert_true(seen.remaining_ms > 0 && seen.remaining_ms <= LEASE_MS);
    assert_false(seen.lost || seen.timed_out || seen.cancelled);
    assert_int_equal(atomic_load(&told), 0); /* never after it has returned */
}

/* ---- how it is asked to stop ---- */

static hf_verdict wait_for_stop(hf_run *run, void *arg)
{
    (void)arg;
    hf_run_on_stop(run, count, &told);
    atomic_fetch_add(&started, 1);
    while (!hf_run_stopping(run) || atomic_load(&told) == 0)
        hf_test_pause_ms(1);
    note(run);
    hf_run_on_stop(run, count, &told_at_once);
    hf_run_set_retry_in(run, 60000); /* if it is to be: not in this test */
    atomic_fetch_add(&returned, 1);
    return HF_VERDICT_DONE;
}

static void at_its_time_out_it_is_told(void **state)
{
    (void)state;
    start(100, wait_for_stop);
    EVENTUALLY(15000, hf_worker_fixture_said(&worker, "outcome=retry") == 1);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
    assert_true(seen.timed_out);
    assert_false(seen.lost || seen.cancelled);
    assert_true(atomic_load(&told_at_once) >=
                1); /* who asks when it has stopped already */
    assert_int_equal(hf_worker_fixture_said(&worker, "error=time-out after 100 ms"), 1);
}

static void when_its_lock_is_lost_it_is_told_once(void **state)
{
    (void)state;
    start(0, wait_for_stop);
    EVENTUALLY(15000, atomic_load(&started) == 1);
    hf_test_take_over(&queue.redis, "q", "a");
    EVENTUALLY(15000, atomic_load(&returned) == 1);
    assert_true(seen.lost);
    assert_false(seen.timed_out || seen.cancelled);
    assert_int_equal(seen.remaining_ms, 0);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
    assert_int_equal(atomic_load(&told), 1);
    assert_int_equal(hf_worker_fixture_said(&worker, "outcome=lost"), 1);
    queue.broken = true; /* by the lock that was put there */
}

static void when_its_worker_stops_it_is_told(void **state)
{
    (void)state;
    start(0, wait_for_stop);
    EVENTUALLY(15000, atomic_load(&started) == 1);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
    assert_int_equal(atomic_load(&told), 1);
    assert_false(seen.lost || seen.timed_out || seen.cancelled);
    assert_int_equal(hf_worker_fixture_said(&worker, "outcome=done"), 1);
}

/* ---- what it says ---- */

static hf_verdict ask_for_an_hour(hf_run *run, void *arg)
{
    (void)arg;
    hf_run_set_error(run, "the shop is closed");
    hf_run_set_retry_in(run, 3600000);
    return HF_VERDICT_RETRY;
}

static void it_says_when_to_run_again(void **state)
{
    (void)state;
    start(0, ask_for_an_hour);
    EVENTUALLY(15000, hf_worker_fixture_said(&worker, "outcome=retry") == 1);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
    int64_t due_ms = hf_fixture_number(&queue.redis, "ZSCORE hf:{q}:schedule a");
    int64_t in_ms = due_ms - hf_queue_fixture_now(&queue);
    assert_true(in_ms > 3500000 && in_ms <= 3600000); /* and not 50 ms, the backoff */
    assert_non_null(strstr(hf_fixture_command(&queue.redis, "HGET hf:{q}:jobs a"),
                           "the shop is closed"));
}

/* ---- a worker that cannot run ---- */

static void a_worker_without_handlers_says_so(void **state)
{
    static const hf_worker_queue q = {HF_WORKER_QUEUE_INIT, .name = "q"};
    const hf_worker_opts opts = {HF_WORKER_OPTS_INIT,
                                 .server = HF_SERVER(.url = hf_fixture_url(&queue.redis)),
                                 .queues = &q, .n_queues = 1};
    char detail[HF_DETAIL_SIZE] = "";
    hf_worker *bare;
    (void)state;
    assert_int_equal(hf_worker_new(&bare, &opts, detail), HF_OK);
    assert_int_equal(hf_worker_run(bare, detail), HF_INVALID);
    assert_string_equal(detail, "expected a new worker with a handler, found none");
    hf_worker_free(bare);
}

static hf_verdict do_nothing(hf_run *run, void *arg)
{
    (void)run;
    (void)arg;
    return HF_VERDICT_DONE;
}

static void its_start_waits_for_redis_as_long_as_connect_timeout_says(void **state)
{
    enum { CONNECT_MS = 6000 };
    static const hf_worker_queue q = {HF_WORKER_QUEUE_INIT, .name = "q"};
    const hf_worker_opts opts = {
        HF_WORKER_OPTS_INIT,
        .server = HF_SERVER(.url = "unix:///nowhere/s", .connect_timeout_ms = CONNECT_MS),
        .queues = &q, .n_queues = 1};
    char detail[HF_DETAIL_SIZE] = "";
    hf_worker *patient;
    (void)state;
    assert_int_equal(hf_worker_new(&patient, &opts, detail), HF_OK);
    assert_int_equal(hf_worker_handle(patient, "t", 0, do_nothing, NULL, NULL), HF_OK);
    const uint64_t from_ms = hf_test_now_ms();
    assert_int_equal(hf_worker_run(patient, detail), HF_CONN);
    assert_true(hf_test_now_ms() - from_ms >= CONNECT_MS);
    assert_non_null(strstr(detail, "/nowhere/s"));
    hf_worker_free(patient);
}

static void a_refused_handler_is_explained(void **state)
{
    static const hf_worker_queue q = {HF_WORKER_QUEUE_INIT, .name = "q"};
    const hf_worker_opts opts = {HF_WORKER_OPTS_INIT, .queues = &q, .n_queues = 1};
    const hf_program empty = {HF_PROGRAM_INIT, .type = "p"}, unsized = {.type = "p"};
    char detail[HF_DETAIL_SIZE] = "";
    hf_worker *one;
    (void)state;
    assert_int_equal(hf_worker_new(&one, &opts, detail), HF_OK);
    assert_int_equal(hf_worker_handle(one, "t", 0, do_nothing, NULL, detail), HF_OK);
    assert_int_equal(hf_worker_handle(one, "t", 0, do_nothing, NULL, detail), HF_INVALID);
    assert_string_equal(detail, "expected one handler for each type, found t");
    assert_int_equal(hf_worker_handle(one, "a b", 0, do_nothing, NULL, detail),
                     HF_INVALID);
    assert_non_null(strstr(detail, "expected a type ("));
    assert_int_equal(hf_worker_handle(one, "u", 0, NULL, NULL, detail), HF_INVALID);
    assert_string_equal(detail, "expected a function, found none");
    assert_int_equal(hf_worker_handle_program(one, &empty, detail), HF_INVALID);
    assert_string_equal(detail, "expected an argv with a program, found none");
    assert_int_equal(hf_worker_handle_program(one, &unsized, detail), HF_INVALID);
    assert_string_equal(detail, "hf_program: its size is 0: begin with HF_PROGRAM_INIT");
    assert_int_equal(hf_worker_handle(one, NULL, 0, do_nothing, NULL, NULL), HF_INVALID);
    hf_worker_free(one);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_handler_knows_its_run),
        TEST(at_its_time_out_it_is_told),
        TEST(when_its_lock_is_lost_it_is_told_once),
        TEST(when_its_worker_stops_it_is_told),
        TEST(it_says_when_to_run_again),
        TEST(its_start_waits_for_redis_as_long_as_connect_timeout_says),
        TEST(a_worker_without_handlers_says_so),
        TEST(a_refused_handler_is_explained),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
