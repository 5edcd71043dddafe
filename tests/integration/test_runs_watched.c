/* test_runs_watched.c - workers tell about runs as long as a viewer watches, and about
 * those that go on now and then. */
#include <string.h>

#include "tests/support/runs_test.h"

static size_t lines_of(const char *id)
{
    size_t n = 0;
    look();
    for (size_t i = 0; i < seen.n; i++)
        n += strcmp(seen.runs[i].id, id) == 0;
    return n;
}

static bool was_added(void)
{
    return strstr(hf_fixture_command(redis, "INFO commandstats"), "cmdstat_xadd") != NULL;
}

static void nobody_looks_and_nothing_is_written(void **state)
{
    (void)state;
    start(NULL);
    put("long", "gate");
    put("short", "ok");
    EVENTUALLY(SOON_MS, atomic_load(&worker.started) == 2);
    ALWAYS(4000, !was_added());
    atomic_store(&worker.gate, true);
    EVENTUALLY(SOON_MS, atomic_load(&worker.returned) == 2);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK);
    assert_false(was_added());
    assert_int_equal(hf_fixture_number(redis, "EXISTS hf:{q}:runs hf:{/}:watch"), 0);
}

/* Its line comes again, for a program that looks since a moment ago. */
static void a_run_that_goes_on_is_told_again(void **state)
{
    (void)state;
    watch();
    start(NULL);
    put("a", "gate");
    EVENTUALLY(SOON_MS, told("a") != NULL);
    const uint64_t from = hf_test_now_ms();
    EVENTUALLY(SOON_MS, (watch(), lines_of("a") >= 2));
    assert_true(hf_test_now_ms() - from >= 8000); /* and not each second */
}

/* It is told at once, and not only after its next ten seconds. */
static void a_run_that_went_on_before_is_told_when_somebody_looks(void **state)
{
    (void)state;
    start(NULL);
    put("a", "gate");
    EVENTUALLY(SOON_MS, atomic_load(&worker.started) == 1);
    ALWAYS(2500, stream() == 0);
    watch();
    EVENTUALLY(12000, told("a") != NULL);
}

static void a_worker_ends_to_tell_when_nobody_looks_any_more(void **state)
{
    (void)state;
    watch();
    start(NULL);
    put("a", "gate");
    EVENTUALLY(SOON_MS, told("a") != NULL);
    hf_fixture_command(redis, "DEL hf:{/}:watch");
    hf_test_pause_ms(10500); /* its next heartbeat, at the latest */
    hf_fixture_command(redis, "DEL hf:{q}:runs");
    put("b", "ok");
    EVENTUALLY(SOON_MS, atomic_load(&worker.returned) == 1);
    ALWAYS(12000, stream() == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(nobody_looks_and_nothing_is_written),
        CASE(a_run_that_goes_on_is_told_again),
        CASE(a_run_that_went_on_before_is_told_when_somebody_looks),
        CASE(a_worker_ends_to_tell_when_nobody_looks_any_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
