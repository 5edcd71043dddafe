/* test_lock_cuts.c - every request of a lock whose connection ends before it was sent,
 * within it, after it, before its answer, and within that: for the line and the cell, for
 * a holder, a waiter and an owner that holds twice. In each case the report is true, and
 * no key outlives its use. */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/base.h"
#include "lock_scripts.h"
#include "tests/support/lock_fixture.h"

enum {
    PATIENCE_MS = 30000,
    LONG_MS = 60000,
    RENEWED_MS = 3000 /* a lease whose renewal is waited for, also on a busy machine */
};

static hf_lock_fixture fixture;
static hf_lock_client *far; /* behind the proxy */

/* Where the connection ends. */
typedef struct cut {
    const char *where;
    hf_proxy_way way;
    size_t bytes;
} cut;

static const cut cuts[] = {
    {"before the request", PROXY_REQUESTS, 0},
    {"after one byte of it", PROXY_REQUESTS, 1},
    {"in the middle of it", PROXY_REQUESTS, 70},
    {"before the answer", PROXY_ANSWERS, 0},
    {"after one byte of it", PROXY_ANSWERS, 1},
    {"in the middle of it", PROXY_ANSWERS, 12},
};

static hf_lock *must(hf_lock_client *locks, hf_lock_opts opts)
{
    opts.lease_ms = opts.lease_ms == 0 ? LONG_MS : opts.lease_ms;
    return hf_lock_must(&fixture, locks, "n", opts);
}

static int begin(void **state)
{
    size_t n;
    (void)hf_lock_fixture_begin(state);
    far = hf_lock_fixture_open(&fixture, fixture.proxy.url);
    /* Redis knows the scripts from now on, and all connections are there. No message of a
     * lock that was given back comes: it would cause a renewal of each lock to come. */
    hf_lock *lock = must(far, (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = RENEWED_MS});
    uint64_t before_ns = hf_lock_deadline_ns(lock);
    EVENTUALLY(PATIENCE_MS, hf_lock_deadline_ns(lock) > before_ns);
    assert_int_equal(hf_lock_force(far, "free", NULL, &n, fixture.detail), HF_OK);
    (void)hf_lock_release_wait(lock, NULL);
    return 0;
}

static int end(void **state)
{
    hf_lock_client_close(far, NULL, NULL);
    return hf_lock_fixture_end(state);
}

static unsigned cuts_before;

/* The next request of `far`, or its answer, meets it: so it is connected before. */
static void set_up(const cut *c)
{
    hf_lock_look look = {HF_LOCK_LOOK_INIT};
    EVENTUALLY(PATIENCE_MS, hf_lock_look_at(far, "n", 1, &look, fixture.detail) == HF_OK);
    hf_lock_look_done(&look);
    cuts_before = hf_proxy_cuts(&fixture.proxy);
    hf_proxy_cut_after(&fixture.proxy, c->way, c->bytes);
}

static void must_have_been_cut(const cut *c)
{
    if (hf_proxy_cuts(&fixture.proxy) == cuts_before)
        fail_msg("nothing was cut %s", c->where);
}

static void released(hf_lock *lock)
{
    assert_int_equal(hf_lock_release_wait(lock, NULL), HF_RELEASE_DONE);
}

/* ---- enter ---- */

static void an_enter_that_is_cut_takes_the_lock_once(void **state)
{
    const hf_lock_opts kinds[] = {
        {HF_LOCK_OPTS_INIT, .form = HF_LOCK_LINE},
        {HF_LOCK_OPTS_INIT, .form = HF_LOCK_SPIN},
        {HF_LOCK_OPTS_INIT, .mode = HF_LOCK_SHARED},
        {HF_LOCK_OPTS_INIT, .mode = HF_LOCK_PERMITS, .permits = 2, .limit = 3},
        {HF_LOCK_OPTS_INIT, .reentrant = true, .owner = "me"},
    };
    (void)state;
    for (size_t k = 0; k < HF_COUNT(kinds); k++)
        for (size_t i = 0; i < HF_COUNT(cuts); i++) {
            set_up(&cuts[i]);
            hf_lock *lock = must(far, kinds[k]);
            must_have_been_cut(&cuts[i]);
            if (kinds[k].form == HF_LOCK_LINE)
                assert_int_equal(
                    hf_fixture_number(&fixture.redis, "ZCARD hf:lock:{n}:x:n"), 1);
            size_t left = 9;
            assert_int_equal(hf_lock_release_wait(lock, &left), HF_RELEASE_DONE);
            assert_int_equal(left, 0); /* it was one hold */
            EVENTUALLY(PATIENCE_MS, hf_lock_is_free(&fixture, "n"));
        }
}

static void an_enter_of_what_is_taken_that_is_cut_stands_in_line_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < HF_COUNT(cuts); i++) {
        hf_lock_waiter w;
        hf_lock *lock = must(fixture.a, (hf_lock_opts){HF_LOCK_OPTS_INIT});
        set_up(&cuts[i]);
        hf_lock_wait_begin(&w, &fixture, far, "n",
                           (hf_lock_opts){HF_LOCK_OPTS_INIT, .lease_ms = LONG_MS});
        EVENTUALLY(PATIENCE_MS, hf_proxy_cuts(&fixture.proxy) > cuts_before);
        assert_int_equal(hf_lock_queue(&fixture, "n"), 1);
        released(lock);
        hf_lock_wait_end(&w);
        assert_int_equal(w.err, HF_OK);
        assert_int_equal(hf_lock_queue(&fixture, "n"), 0);
        released(w.lock);
        EVENTUALLY(PATIENCE_MS, hf_lock_is_free(&fixture, "n"));
    }
}

static void a_second_enter_of_an_owner_that_is_cut_counts_once(void **state)
{
    const hf_lock_opts opts = {HF_LOCK_OPTS_INIT, .reentrant = true, .owner = "me"};
    (void)state;
    for (size_t i = 0; i < HF_COUNT(cuts); i++) {
        size_t left = 9;
        hf_lock *one = must(far, opts);
        set_up(&cuts[i]);
        hf_lock *two = must(far, opts);
        must_have_been_cut(&cuts[i]);
        assert_int_equal(hf_lock_release_wait(two, &left), HF_RELEASE_STILL_HELD);
        assert_int_equal(left, 1);
        released(one);
        EVENTUALLY(PATIENCE_MS, hf_lock_is_free(&fixture, "n"));
    }
}

/* ---- leave ---- */

static void a_leave_that_is_cut_gives_it_back(void **state)
{
    const hf_lock_form forms[] = {HF_LOCK_LINE, HF_LOCK_SPIN};
    (void)state;
    for (size_t k = 0; k < HF_COUNT(forms); k++)
        for (size_t i = 0; i < HF_COUNT(cuts); i++) {
            hf_lock *lock =
                must(far, (hf_lock_opts){HF_LOCK_OPTS_INIT, .form = forms[k]});
            set_up(&cuts[i]);
            hf_lock_release_result result = hf_lock_release_wait(lock, NULL);
            must_have_been_cut(&cuts[i]);
            /* UNKNOWN: the machine was slower than a request may be */
            assert_true(result == HF_RELEASE_DONE || result == HF_RELEASE_UNKNOWN);
            EVENTUALLY(PATIENCE_MS, hf_lock_is_free(&fixture, "n"));
        }
}

static void a_leave_of_one_of_two_holds_that_is_cut_leaves_the_other(void **state)
{
    const hf_lock_opts opts = {HF_LOCK_OPTS_INIT, .reentrant = true, .owner = "me"};
    (void)state;
    for (size_t i = 0; i < HF_COUNT(cuts); i++) {
        hf_lock *one = must(far, opts), *two = must(far, opts);
        set_up(&cuts[i]);
        (void)hf_lock_release_wait(two, NULL);
        must_have_been_cut(&cuts[i]);
        EVENTUALLY(
            PATIENCE_MS,
            strchr(strchr(hf_fixture_command(&fixture.redis, "HGET hf:lock:{n}:e:n me"),
                          '='),
                   ',') == NULL); /* one hold */
        assert_true(hf_lock_held(one));
        released(one);
        EVENTUALLY(PATIENCE_MS, hf_lock_is_free(&fixture, "n"));
    }
}

typedef struct told {
    atomic_int err; /* 1: not told yet */
} told;

static void on_told(hf_lock *lock, hf_err err, const char *detail, void *arg)
{
    (void)lock;
    (void)detail;
    atomic_store(&((told *)arg)->err, err);
}

static void a_cancel_that_is_cut_leaves_the_line(void **state)
{
    const char *const name = "n";
    const hf_lock_opts opts = {HF_LOCK_OPTS_INIT, .names = &name, .n_names = 1,
                               .wait_ms = -1, .lease_ms = LONG_MS};
    (void)state;
    for (size_t i = 0; i < HF_COUNT(cuts); i++) {
        told t = {.err = 1};
        hf_lock *waits;
        hf_lock *lock = must(fixture.a, (hf_lock_opts){HF_LOCK_OPTS_INIT});
        assert_int_equal(hf_lock_acquire(far, &opts, on_told, &t, &waits, fixture.detail),
                         HF_OK);
        EVENTUALLY(PATIENCE_MS, hf_lock_queue(&fixture, "n") == 1);
        EVENTUALLY(PATIENCE_MS, hf_lock_get_state(waits) == HF_LOCK_WAITING);
        set_up(&cuts[i]);
        hf_lock_cancel(waits);
        EVENTUALLY(PATIENCE_MS, t.err == HF_CANCEL);
        EVENTUALLY(PATIENCE_MS, hf_lock_queue(&fixture, "n") == 0);
        released(lock);
        EVENTUALLY(PATIENCE_MS, hf_lock_is_free(&fixture, "n"));
    }
}

static long long processor_ms(void)
{
    struct rusage used;
    assert_int_equal(getrusage(RUSAGE_SELF, &used), 0);
    return (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000LL +
           (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1000;
}

static void a_release_waits_for_redis_without_computing(void **state)
{
    (void)state;
    hf_lock *lock = must(far, (hf_lock_opts){HF_LOCK_OPTS_INIT});
    set_up(&cuts[3]);
    hf_proxy_refuse(&fixture.proxy, true);
    long long before_ms = processor_ms();
    assert_int_equal(hf_lock_release_wait(lock, NULL), HF_RELEASE_UNKNOWN); /* 1 s */
    assert_true(processor_ms() - before_ms < 500);
    hf_proxy_refuse(&fixture.proxy, false);
    EVENTUALLY(PATIENCE_MS, hf_lock_is_free(&fixture, "n"));
}

/* ---- keep ---- */

/* Those of a waiter's renewal too: it is the same request. */
static void a_renewal_that_is_cut_is_made_again(void **state)
{
    const hf_lock_form forms[] = {HF_LOCK_LINE, HF_LOCK_SPIN};
    (void)state;
    for (size_t k = 0; k < HF_COUNT(forms); k++)
        for (size_t i = 0; i < HF_COUNT(cuts); i++) {
            hf_lock *lock = must(far, (hf_lock_opts){HF_LOCK_OPTS_INIT, .form = forms[k],
                                                     .lease_ms = RENEWED_MS});
            uint64_t before_ns = hf_lock_deadline_ns(lock);
            set_up(&cuts[i]);
            EVENTUALLY(PATIENCE_MS, hf_proxy_cuts(&fixture.proxy) > cuts_before);
            EVENTUALLY(PATIENCE_MS, hf_lock_deadline_ns(lock) > before_ns);
            assert_true(hf_lock_held(lock));
            released(lock);
            EVENTUALLY(PATIENCE_MS, hf_lock_is_free(&fixture, "n"));
        }
}

/* ---- what is asked ---- */

/* The connection that hears what happens to the lock asks nothing more. */
static bool listens(void)
{
    return strstr(hf_fixture_command(&fixture.redis, "INFO clients"),
                  "blocked_clients:1") != NULL;
}

static void a_question_that_is_cut_is_asked_again_unless_it_is_of_a_lock(void **state)
{
    uint64_t highest;
    (void)state;
    for (size_t i = 0; i < HF_COUNT(cuts); i++) {
        hf_lock_look look = {HF_LOCK_LOOK_INIT};
        hf_lock *lock = must(far, (hf_lock_opts){HF_LOCK_OPTS_INIT});
        const uint64_t fence = hf_lock_fence(lock);
        EVENTUALLY(PATIENCE_MS, listens());
        set_up(&cuts[i]);
        hf_err err = hf_lock_look_at(far, "n", 10, &look, fixture.detail);
        must_have_been_cut(&cuts[i]);
        assert_int_equal(err, HF_OK);
        hf_lock_look_done(&look);
        EVENTUALLY(PATIENCE_MS, listens());
        set_up(&cuts[i]);
        assert_int_equal(
            hf_fence_check(far, "n", fence, "me", 0, &highest, fixture.detail), HF_OK);
        EVENTUALLY(PATIENCE_MS, listens());
        set_up(&cuts[i]);
        assert_int_equal(hf_lock_extend_wait(lock, 2 * LONG_MS, NULL), HF_UNSURE);
        assert_true(hf_lock_held(lock));
        assert_int_equal(hf_lock_extend_wait(lock, 2 * LONG_MS, NULL), HF_OK);
        EVENTUALLY(PATIENCE_MS, listens());
        set_up(&cuts[i]);
        assert_int_equal(hf_lock_downgrade_wait(lock, NULL), HF_UNSURE);
        assert_true(hf_lock_held(lock));
        assert_int_equal(hf_lock_downgrade_wait(lock, NULL), HF_OK);
        released(lock);
    }
}

static void a_demand_that_is_cut_is_made_again_and_counted(void **state)
{
    size_t n;
    (void)state;
    for (size_t i = 0; i < HF_COUNT(cuts); i++) {
        hf_lock *lock = must(fixture.a, (hf_lock_opts){HF_LOCK_OPTS_INIT});
        hf_lock_released(
            hf_lock_must(&fixture, far, "other", (hf_lock_opts){HF_LOCK_OPTS_INIT}));
        set_up(&cuts[i]);
        assert_int_equal(hf_lock_revoke(far, "n", NULL, &n, fixture.detail), HF_OK);
        assert_int_equal(n, 1);
        set_up(&cuts[i]);
        assert_int_equal(hf_lock_force(far, "n", NULL, &n, fixture.detail), HF_OK);
        assert_int_equal(n, 1);
        assert_int_equal(hf_lock_force(far, "n", NULL, &n, fixture.detail), HF_OK);
        assert_int_equal(n, 0);
        (void)hf_lock_release_wait(lock, NULL);
        EVENTUALLY(PATIENCE_MS, hf_lock_is_free(&fixture, "n"));
    }
}

/* ---- a grant and the end of a wait ---- */

static void a_grant_that_races_the_end_of_a_wait_leaves_nothing(void **state)
{
    enum { TIMES = 300 };
    unsigned granted = 0;
    (void)state;
    for (int i = 0; i < TIMES; i++) {
        told t = {.err = 1};
        const char *const name = "n";
        hf_lock *waits;
        const hf_lock_opts opts = {HF_LOCK_OPTS_INIT, .names = &name, .n_names = 1,
                                   .wait_ms = 2 + i % 5, .lease_ms = LONG_MS};
        hf_lock *lock = must(fixture.a, (hf_lock_opts){HF_LOCK_OPTS_INIT});
        assert_int_equal(
            hf_lock_acquire(fixture.b, &opts, on_told, &t, &waits, fixture.detail),
            HF_OK);
        hf_test_pause_ms(1 + (unsigned)(i / 5) % 5);
        released(lock);
        EVENTUALLY(PATIENCE_MS, t.err != 1);
        assert_true(t.err == HF_OK || t.err == HF_TAKEN);
        if (t.err == HF_OK)
            released(waits);
        granted += t.err == HF_OK;
        EVENTUALLY(PATIENCE_MS, hf_lock_is_free(&fixture, "n"));
    }
    printf("granted %u of %d times\n", granted, TIMES);
}

#define TEST(name) cmocka_unit_test_prestate_setup_teardown(name, begin, end, &fixture)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_enter_that_is_cut_takes_the_lock_once),
        TEST(an_enter_of_what_is_taken_that_is_cut_stands_in_line_once),
        TEST(a_second_enter_of_an_owner_that_is_cut_counts_once),
        TEST(a_leave_that_is_cut_gives_it_back),
        TEST(a_leave_of_one_of_two_holds_that_is_cut_leaves_the_other),
        TEST(a_cancel_that_is_cut_leaves_the_line),
        TEST(a_release_waits_for_redis_without_computing),
        TEST(a_renewal_that_is_cut_is_made_again),
        TEST(a_question_that_is_cut_is_asked_again_unless_it_is_of_a_lock),
        TEST(a_demand_that_is_cut_is_made_again_and_counted),
        TEST(a_grant_that_races_the_end_of_a_wait_leaves_nothing),
    };
    hf_lock_fixture_up(&fixture, NULL);
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    hf_lock_fixture_down(&fixture);
    return failures;
}
