/* test_run_loop.c - the threads of a run loop: every caller gets its own answer, no
 * wake-up is lost, and only the service thread runs callbacks.
 *
 * The other side is a thread that answers each request that it reads from a pipe. A lost
 * answer is found by the deadline of each wait, which is longer than a test may take. */
#include "redis/run_loop.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/random.h"
#include "tests/support/eventually.h"

enum { THREADS = 6, CALLS = 3000, SLOW_MS = 300, SLOWER_MS = 2000, LATE_MS = 20000 };

/* What is put in, sent, answered and told. */
typedef struct request {
    struct request *next;
    hf_run_waiter run;
    bool waits;
    uint64_t delay_ms; /* of its answer; a timer of the loop instead of the pipe: `slow`,
                          and from SLOWER_MS `slower`, for one request at a time. PIPE:
                          none; SECOND_LOOK: the first look at it does not send it */
} request;

#define PIPE UINT64_MAX
#define SECOND_LOOK (UINT64_MAX - 1)

static hf_run_loop loop;
static request *put; /* under the loop's lock */
static bool closing; /* the same */
static int asked[2], answered[2];
static uv_poll_t poll_answers;
static uv_timer_t slow, slower;
static pthread_t other_side;
static pthread_t callback_thread;
static atomic_uint callbacks_run, callbacks_elsewhere;
static atomic_bool expected;
static atomic_bool slow_service; /* its next turn lasts until a caller waits */
static bool open_handles;

/* ---- the other side ---- */

static void *answer_all(void *arg)
{
    request *r;
    (void)arg;
    while (read(asked[0], &r, sizeof r) == (ssize_t)sizeof r)
        if (write(answered[1], &r, sizeof r) != (ssize_t)sizeof r)
            abort();
    return NULL;
}

/* ---- on the loop ---- */

static void run_callback(request *r)
{
    if (atomic_fetch_add(&callbacks_run, 1) == 0)
        callback_thread = pthread_self();
    else if (!pthread_equal(callback_thread, pthread_self()))
        atomic_fetch_add(&callbacks_elsewhere, 1);
    hf_run_loop_lock(&loop); /* a callback is free to use it */
    hf_run_loop_unlock(&loop);
    free(r);
}

static void tell(request *r)
{
    bool callback = false, behind = false;
    hf_run_loop_lock(&loop);
    callback = !r->waits;
    behind = r->waits && r->run.left;
    if (callback)
        loop.callbacks--;
    else if (!behind)
        hf_run_loop_done_locked(&loop, &r->run);
    hf_run_loop_unlock(&loop);
    if (behind)
        free(r);
    if (callback) {
        hf_run_loop_wake_done(&loop);
        run_callback(r);
    }
}

static void on_slow(uv_timer_t *timer)
{
    tell(timer->data);
}

static void on_answers(uv_poll_t *handle, int status, int events)
{
    request *got[64];
    (void)handle;
    (void)status;
    (void)events;
    ssize_t n = read(answered[0], got, sizeof got);
    for (ssize_t i = 0; i < n / (ssize_t)sizeof got[0]; i++)
        tell(got[i]);
}

static void close_handles(void)
{
    if (!open_handles)
        return;
    open_handles = false;
    uv_close((uv_handle_t *)&poll_answers, NULL);
    uv_close((uv_handle_t *)&slow, NULL);
    uv_close((uv_handle_t *)&slower, NULL);
    hf_run_loop_close_wakeup(&loop, NULL);
}

static void send_one(request *r)
{
    if (r->delay_ms != PIPE) {
        uv_timer_t *timer = r->delay_ms < SLOWER_MS ? &slow : &slower;
        timer->data = r;
        uv_update_time(loop.uv);
        (void)uv_timer_start(timer, on_slow, r->delay_ms, 0);
    } else if (write(asked[1], &r, sizeof r) != (ssize_t)sizeof r) {
        abort();
    }
}

static bool a_caller_waits(void)
{
    hf_run_loop_lock(&loop);
    bool waits = loop.waiting.first != NULL;
    hf_run_loop_unlock(&loop);
    return waits;
}

/* As the producer does: a caller that is the owner leaves callbacks to the service
 * thread.
 */
static void submit(void *arg)
{
    request **at = &put;
    (void)arg;
    if (atomic_exchange(&slow_service, false))
        EVENTUALLY(LATE_MS, a_caller_waits());
    hf_run_loop_lock(&loop);
    while (*at != NULL) {
        request *r = *at;
        bool later = r->delay_ms == SECOND_LOOK;
        if (later)
            r->delay_ms = PIPE;
        if (later || (!r->waits && loop.by_caller)) {
            at = &r->next;
            continue;
        }
        *at = r->next;
        send_one(r);
    }
    loop.unsent = put != NULL;
    bool end = closing && put == NULL && loop.callbacks == 0;
    hf_run_loop_unlock(&loop);
    if (end)
        close_handles();
}

static bool expects(void *arg)
{
    (void)arg;
    return atomic_load(&expected);
}

static const hf_run_hooks hooks = {submit, NULL, expects};

/* ---- life ---- */

static int up(void **state)
{
    (void)state;
    atomic_store(&expected, true);
    atomic_store(&slow_service, false);
    closing = false;
    put = NULL;
    atomic_store(&callbacks_run, 0);
    atomic_store(&callbacks_elsewhere, 0);
    if (pipe(asked) != 0 || pipe(answered) != 0 ||
        fcntl(answered[0], F_SETFL, O_NONBLOCK) != 0 ||
        hf_run_loop_open(&loop, NULL, &hooks, NULL) != HF_OK ||
        uv_poll_init(loop.uv, &poll_answers, answered[0]) != 0 ||
        uv_poll_start(&poll_answers, UV_READABLE, on_answers) != 0 ||
        uv_timer_init(loop.uv, &slow) != 0 || uv_timer_init(loop.uv, &slower) != 0)
        return -1;
    open_handles = true;
    if (pthread_create(&other_side, NULL, answer_all, NULL) != 0)
        return -1;
    return hf_run_loop_start(&loop) == HF_OK ? 0 : -1;
}

static int down(void **state)
{
    (void)state;
    hf_run_loop_lock(&loop);
    closing = true;
    hf_run_loop_unlock(&loop);
    hf_run_loop_retire(&loop);
    hf_run_loop_close(&loop);
    (void)close(asked[1]);
    (void)pthread_join(other_side, NULL);
    (void)close(asked[0]);
    (void)close(answered[0]);
    (void)close(answered[1]);
    return 0;
}

/* ---- callers ---- */

static request *put_in(bool waits, uint64_t delay_ms)
{
    request *r = calloc(1, sizeof *r);
    if (r == NULL)
        abort();
    r->waits = waits;
    r->delay_ms = delay_ms;
    hf_run_loop_lock(&loop);
    r->next = put;
    put = r;
    if (!waits)
        loop.callbacks++;
    hf_run_loop_unlock(&loop);
    return r;
}

/* Whether it was answered in time. */
static bool call(uint64_t delay_ms, uint64_t timeout_ms)
{
    hf_run_loop_enter(&loop);
    request *r = put_in(true, delay_ms);
    r->run.submits = true;
    r->run.again_ms = delay_ms == SECOND_LOOK;
    bool done = hf_run_loop_await(&loop, &r->run, hf_boot_ns() + timeout_ms * HF_MS_NS);
    if (done)
        free(r);
    hf_run_loop_leave(&loop);
    return done;
}

static void call_back(void)
{
    (void)put_in(false, PIPE);
    hf_run_loop_wake(&loop);
}

typedef struct caller {
    pthread_t thread;
    hf_rng rng;
    bool calls_back, gives_up;
    unsigned lost;
} caller;

static void *call_often(void *arg)
{
    caller *c = arg;
    for (int i = 0; i < CALLS; i++) {
        uint64_t dice = hf_rng_next(&c->rng) % 16;
        if (dice == 0 && c->calls_back)
            call_back();
        else if (dice == 1 && c->gives_up)
            (void)call(PIPE, 0);
        else if (dice == 2)
            hf_run_loop_wake(&loop);
        else if (!call(PIPE, LATE_MS))
            c->lost++;
    }
    return NULL;
}

static void run_callers(bool calls_back, bool gives_up)
{
    caller callers[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        callers[i] =
            (caller){.rng.state = i, .calls_back = calls_back, .gives_up = gives_up};
        assert_int_equal(
            pthread_create(&callers[i].thread, NULL, call_often, &callers[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(callers[i].thread, NULL), 0);
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(callers[i].lost, 0);
}

/* ---- no wake-up is lost ---- */

static void every_caller_is_answered(void **state)
{
    (void)state;
    run_callers(false, false);
}

static void every_caller_is_answered_beside_callbacks(void **state)
{
    (void)state;
    run_callers(true, false);
    for (uint64_t end = hf_boot_ns() + LATE_MS * HF_MS_NS; hf_boot_ns() < end;) {
        hf_run_loop_lock(&loop);
        bool none = loop.callbacks == 0;
        hf_run_loop_unlock(&loop);
        if (none)
            break;
    }
    assert_int_equal(loop.callbacks, 0);
    assert_true(atomic_load(&callbacks_run) > THREADS);
    assert_int_equal(atomic_load(&callbacks_elsewhere), 0);
}

static void callers_that_give_up_leave_their_work_to_others(void **state)
{
    (void)state;
    run_callers(true, true);
}

static bool a_caller_sleeps(void)
{
    hf_run_loop_lock(&loop);
    bool sleeps =
        loop.poller != NULL && loop.poller != &loop.service && loop.until_ns != 0;
    hf_run_loop_unlock(&loop);
    return sleeps;
}

static void *call_slowly(void *done)
{
    atomic_store((atomic_bool *)done, call(SLOWER_MS, LATE_MS));
    return NULL;
}

static void an_earlier_timer_wakes_the_caller_that_polls(void **state)
{
    (void)state;
    pthread_t sleeper;
    atomic_bool done = false;
    assert_int_equal(pthread_create(&sleeper, NULL, call_slowly, &done), 0);
    EVENTUALLY(LATE_MS, a_caller_sleeps());
    assert_true(call(1, LATE_MS));
    assert_false(atomic_load(&done));
    assert_int_equal(pthread_join(sleeper, NULL), 0);
    assert_true(atomic_load(&done));
}

static void a_caller_that_came_during_a_turn_polls(void **state)
{
    (void)state;
    pthread_t sleeper;
    atomic_bool done = false;
    atomic_store(&slow_service, true);
    hf_run_loop_wake(&loop);
    EVENTUALLY(LATE_MS, !atomic_load(&slow_service));
    assert_int_equal(pthread_create(&sleeper, NULL, call_slowly, &done), 0);
    EVENTUALLY(LATE_MS, a_caller_sleeps());
    assert_int_equal(pthread_join(sleeper, NULL), 0);
    assert_true(atomic_load(&done));
}

/* The service thread may look as well, so once would not do. */
static void a_caller_that_polls_looks_once_more(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++)
        assert_true(call(SECOND_LOOK, LATE_MS));
}

/* ---- spinning ---- */

/* Processor time of this thread in ms, while it waits for the answer. */
static double wait_ms(uint64_t ms)
{
    struct timespec before, after;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
    assert_true(call(ms, LATE_MS));
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
    return (double)(after.tv_sec - before.tv_sec) * 1e3 +
           (double)(after.tv_nsec - before.tv_nsec) / 1e6;
}

static uint32_t gap(void)
{
    hf_run_loop_lock(&loop);
    uint32_t found = loop.spin.gap;
    loop.spin.skip = 0;
    hf_run_loop_unlock(&loop);
    return found;
}

static void a_timer_that_is_due_at_once_ends_the_wait(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++)
        (void)wait_ms(0);
}

/* One that spins in vain leaves out the next ones. The clock may jump over the moment in
 * which an answer is recent: then once more. */
static void a_caller_that_has_just_had_an_answer_spins_for_the_next(void **state)
{
    (void)state;
    for (int i = 0; i < 1000; i++) {
        (void)wait_ms(0);
        (void)wait_ms(2);
        if (gap() > 0)
            return;
    }
    fail_msg("it slept at once a thousand times");
}

static void it_does_not_spin_for_long(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        (void)wait_ms(0);
        (void)gap();
        assert_true(wait_ms(SLOW_MS) < SLOW_MS / 2.0);
    }
}

static void it_does_not_spin_for_what_is_not_expected(void **state)
{
    (void)state;
    atomic_store(&expected, false);
    for (int i = 0; i < 100; i++) {
        (void)wait_ms(0);
        (void)wait_ms(1);
        assert_int_equal(gap(), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_caller_is_answered, up, down),
        cmocka_unit_test_setup_teardown(every_caller_is_answered_beside_callbacks, up,
                                        down),
        cmocka_unit_test_setup_teardown(callers_that_give_up_leave_their_work_to_others,
                                        up, down),
        cmocka_unit_test_setup_teardown(a_timer_that_is_due_at_once_ends_the_wait, up,
                                        down),
        cmocka_unit_test_setup_teardown(an_earlier_timer_wakes_the_caller_that_polls, up,
                                        down),
        cmocka_unit_test_setup_teardown(a_caller_that_came_during_a_turn_polls, up, down),
        cmocka_unit_test_setup_teardown(a_caller_that_polls_looks_once_more, up, down),
        cmocka_unit_test_setup_teardown(
            a_caller_that_has_just_had_an_answer_spins_for_the_next, up, down),
        cmocka_unit_test_setup_teardown(it_does_not_spin_for_long, up, down),
        cmocka_unit_test_setup_teardown(it_does_not_spin_for_what_is_not_expected, up,
                                        down),
    };
    (void)alarm(300); /* a thread that sleeps for ever fails the test */
    return cmocka_run_group_tests_name("run_loop", tests, NULL, NULL);
}
