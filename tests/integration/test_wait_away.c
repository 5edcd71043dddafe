/* test_wait_away.c - waiting for the ends of jobs while Redis is away: the deadline is
 * kept, and a wait goes on when Redis is back in time. */
#include "holdfast/job_wait.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "tests/support/eventually.h"
#include "tests/support/queue_fixture.h"

/* A second is promised; the rest is for a machine that is busy. */
enum { DEADLINE_MS = 700, LATE_MS = 1500, MANY = 60, LONG_MS = 60000 };

static hf_queue_fixture fixture;
static hf_waits *waits;
static char detail[HF_DETAIL_SIZE];

static void must(hf_err err)
{
    if (err != HF_OK)
        fail_msg("%s: %s", hf_err_name(err), detail);
}

static int up(void **state)
{
    (void)state;
    hf_queue_fixture_start(&fixture, &(hf_fixture_options){.persistent = true});
    const hf_server_opts server = {HF_SERVER_OPTS_INIT,
                                   .url = hf_fixture_url(&fixture.redis)};
    must(hf_waits_open(&waits, &(hf_waits_opts){HF_WAITS_OPTS_INIT, .server = &server},
                       detail));
    must(hf_admin_open(
        &fixture.admin,
        &(hf_admin_opts){HF_ADMIN_OPTS_INIT, .server = &server, .deadline_ms = 1000},
        detail));
    return 0;
}

static int down(void **state)
{
    (void)state;
    hf_waits_close(waits);
    hf_queue_fixture_stop(&fixture);
    return 0;
}

/* ---- many waits ---- */

typedef struct told {
    atomic_bool is;
    hf_err err;
    char why[128];
    uint64_t from_ms, ms, fair_from_ms, fair_ms;
} told;

static void on_end(const hf_job_end *end, void *arg)
{
    told *t = arg;
    t->err = end->err;
    t->ms = hf_test_now_ms() - t->from_ms;
    t->fair_ms = hf_test_fair_ms() - t->fair_from_ms;
    (void)snprintf(t->why, sizeof t->why, "%s", end->detail);
    atomic_store(&t->is, true);
}

static void wait_for(told *t, const char *queue, const char *id, uint32_t deadline_ms)
{
    *t = (told){.from_ms = hf_test_now_ms(), .fair_from_ms = hf_test_fair_ms()};
    must(hf_job_wait(waits, queue, id, fixture.now_ms, deadline_ms, on_end, t, detail));
}

static void is_told_in_time(told *t, uint32_t deadline_ms)
{
    EVENTUALLY(LONG_MS, atomic_load(&t->is));
    assert_int_equal(t->err, HF_TIMEOUT);
    if (t->ms < deadline_ms || t->fair_ms > deadline_ms + LATE_MS)
        fail_msg("%u ms, and it was told after %u: %s", (unsigned)deadline_ms,
                 (unsigned)t->ms, t->why);
}

static void is_told(told *t, hf_err err)
{
    EVENTUALLY(LONG_MS, atomic_load(&t->is));
    if (t->err != err)
        fail_msg("told %s: %s", hf_err_name(t->err), t->why);
}

static bool is_waited_for(const char *id)
{
    return hf_fixture_number(&fixture.redis, "HEXISTS hf:{q}:waits %s", id) == 1;
}

static void stop(void)
{
    hf_fixture_kill(&fixture.redis, SIGKILL);
}

static void start(void)
{
    hf_fixture_restart(&fixture.redis);
    hf_queue_fixture_ready(&fixture);
}

static void silence(void)
{
    hf_fixture_signal(&fixture.redis, SIGSTOP);
}

static void go_on(void)
{
    hf_fixture_signal(&fixture.redis, SIGCONT);
}

static const struct {
    void (*take_away)(void), (*bring_back)(void);
} ways[] = {{stop, start}, {silence, go_on}};

/* Some are known to Redis and are told about, the others begin while it is away. */
static void deadlines_are_kept(size_t way)
{
    static told all[MANY];
    char id[16], queue[16];
    must(hf_queue_fixture_enqueue(&fixture, "job-0", 0));
    wait_for(&all[0], "q", "job-0", DEADLINE_MS + 300);
    EVENTUALLY(5000, is_waited_for("job-0"));
    ways[way].take_away();
    for (unsigned i = 1; i < MANY; i++) {
        (void)snprintf(id, sizeof id, "job-%u", i);
        (void)snprintf(queue, sizeof queue, "q%u", i % 7);
        wait_for(&all[i], queue, id, DEADLINE_MS + 20 * i);
    }
    is_told_in_time(&all[0], DEADLINE_MS + 300);
    for (unsigned i = 1; i < MANY; i++)
        is_told_in_time(&all[i], DEADLINE_MS + 20 * i);
    ways[way].bring_back();
}

static void deadlines_are_kept_while_redis_is_stopped(void **state)
{
    (void)state;
    deadlines_are_kept(0);
}

static void deadlines_are_kept_while_redis_is_silent(void **state)
{
    (void)state;
    deadlines_are_kept(1);
}

static void run(const char *id)
{
    must(hf_queue_fixture_enqueue(&fixture, id, 0));
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 1, 0), 1);
}

/* The connection of the fixture may have been lost as well. */
static void complete(const char *id)
{
    hf_err err = HF_UNSURE;
    bool unsure = false;
    for (int i = 0; i < 5 && (err == HF_UNSURE || err == HF_CONN); i++) {
        hf_queue_fixture_ready(&fixture);
        err = hf_queue_fixture_complete(&fixture, "w", id, NULL);
        unsure |= err == HF_UNSURE;
    }
    if (err != HF_OK && !(unsure && err == HF_GONE))
        fail_msg("%s: %s", hf_err_name(err), fixture.detail);
}

static void a_wait_goes_on_when_redis_is_back(void **state)
{
    (void)state;
    for (size_t i = 0; i < HF_COUNT(ways); i++) {
        told t;
        run("one");
        wait_for(&t, "q", "one", LONG_MS);
        EVENTUALLY(5000, is_waited_for("one"));
        ways[i].take_away();
        ALWAYS(1500, !atomic_load(&t.is));
        ways[i].bring_back();
        hf_queue_fixture_ready(&fixture);
        complete("one");
        is_told(&t, HF_OK);
    }
}

/* ---- one call that waits ---- */

typedef struct call {
    pthread_t thread;
    uint32_t deadline_ms;
    atomic_bool is_over;
    hf_err err;
    uint64_t ms, fair_ms; /* it took */
    char why[HF_DETAIL_SIZE];
} call;

static void *wait_in_a_call(void *arg)
{
    call *c = arg;
    uint64_t from_ms = hf_test_now_ms(), fair_from_ms = hf_test_fair_ms();
    c->err = hf_admin_wait(fixture.admin, "q", "one", 0, c->deadline_ms, c->why);
    c->ms = hf_test_now_ms() - from_ms;
    c->fair_ms = hf_test_fair_ms() - fair_from_ms;
    atomic_store(&c->is_over, true);
    return NULL;
}

/* Redis has told the call that the job runs, and will tell its end. */
static void begin(call *c, uint32_t deadline_ms)
{
    run("one");
    long long before = hf_fixture_calls(&fixture.redis, "blpop");
    *c = (call){.deadline_ms = deadline_ms};
    assert_int_equal(pthread_create(&c->thread, NULL, wait_in_a_call, c), 0);
    EVENTUALLY(5000, is_waited_for("one") &&
                         hf_fixture_calls(&fixture.redis, "blpop") > before);
}

static void end(call *c, hf_err err)
{
    EVENTUALLY(LONG_MS, atomic_load(&c->is_over)); /* which looks at the fair clock */
    assert_int_equal(pthread_join(c->thread, NULL), 0);
    if (c->err != err)
        fail_msg("%s after %u ms: %s", hf_err_name(c->err), (unsigned)c->ms, c->why);
}

static void a_call_keeps_its_deadline(void **state)
{
    (void)state;
    for (size_t i = 0; i < HF_COUNT(ways); i++) {
        call c;
        begin(&c, 2 * DEADLINE_MS);
        ways[i].take_away();
        end(&c, HF_TIMEOUT);
        assert_true(c.ms >= 2 * DEADLINE_MS);
        if (c.fair_ms > 2 * DEADLINE_MS + LATE_MS)
            fail_msg("it took %u ms", (unsigned)c.ms);
        ways[i].bring_back();
        complete("one");
    }
}

/* Redis is away for longer than a single look may take. */
static void a_call_goes_on_when_redis_is_back(void **state)
{
    (void)state;
    for (size_t i = 0; i < HF_COUNT(ways); i++) {
        call c;
        begin(&c, LONG_MS);
        ways[i].take_away();
        ALWAYS(1600, !atomic_load(&c.is_over));
        ways[i].bring_back();
        complete("one");
        end(&c, HF_OK);
    }
}

static void a_call_that_never_saw_the_job_says_why(void **state)
{
    (void)state;
    stop();
    uint64_t from_ms = hf_test_now_ms();
    assert_int_equal(hf_admin_wait(fixture.admin, "q", "one", 0, DEADLINE_MS, detail),
                     HF_CONN);
    assert_true(hf_test_now_ms() - from_ms >= DEADLINE_MS);
    assert_true(detail[0] != '\0');
    /* Without an end it is the deadline of any call. */
    assert_int_equal(hf_admin_wait(fixture.admin, "q", "one", 0, 0, detail), HF_CONN);
    start();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(deadlines_are_kept_while_redis_is_stopped),
        TEST(deadlines_are_kept_while_redis_is_silent),
        TEST(a_wait_goes_on_when_redis_is_back),
        TEST(a_call_keeps_its_deadline),
        TEST(a_call_goes_on_when_redis_is_back),
        TEST(a_call_that_never_saw_the_job_says_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
