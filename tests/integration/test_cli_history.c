/* test_cli_history.c - the history of real workers, as `holdfast stats` shows it: many
 * types, and a worker that is killed. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "tests/support/cli_try.h"
#include "tests/support/eventually.h"

enum { TYPES = 70, PLACES = 64, SOON_MS = 30000, LINE = 200, MINUTE_MS = 60000 };
enum { HISTORY_MS = 90000 }; /* what ends after the first sample comes with its minute */

#define HANDLERS                                                                         \
    HF_CLI_PATIENT                                                                       \
    "worker: {concurrency: 4, lease: 30s}\n"                                             \
    "handlers: [{type: '*', exec: ['true']}]\n"

/* What all lines of `stats --json` have in sum. */
typedef struct sums {
    size_t types;
    long long done, others, runs;
} sums;

static sums read_stats(void)
{
    sums s = {.types = 0};
    hf_try_run("stats @ --json", 0);
    for (const char *at = hf_try_fixture.out; *at != '\0'; at = strchr(at, '\n') + 1) {
        json_t *o = json_loadb(at, (size_t)(strchr(at, '\n') - at), 0, NULL);
        json_t *bucket;
        size_t i;
        assert_non_null(o);
        s.types++;
        s.done += hf_try_number(o, "done");
        if (strcmp(hf_try_text(o, "type"), "*") == 0)
            s.others = hf_try_number(o, "done");
        json_array_foreach(json_object_get(o, "runs"), i, bucket) s.runs +=
            json_integer_value(json_array_get(bucket, 1));
        json_decref(o);
    }
    return s;
}

static void enqueue_types(unsigned n)
{
    static char lines[TYPES * 32];
    size_t len = 0;
    for (unsigned i = 0; i < n; i++)
        len += (size_t)snprintf(lines + len, sizeof lines - len,
                                "{\"type\":\"type-%02u\"}\n", i);
    const int code =
        hf_cli_fixture_run(&hf_try_fixture, "enqueue --bulk - @", lines, NULL);
    if (code != 0)
        fail_msg("%s", hf_try_fixture.err);
}

static void a_worker_tells_64_types_and_the_others(void **state)
{
    (void)state;
    enqueue_types(TYPES);
    const int64_t minute = hf_wall_ms() / MINUTE_MS;
    hf_try_worker("worker @ -c w.yaml");
    EVENTUALLY(SOON_MS, hf_try_figure("default", "done") == TYPES);
    hf_proc_signal(&hf_try_proc, SIGTERM);
    assert_true(hf_proc_wait(&hf_try_proc, SOON_MS));
    const bool of_one_minute = hf_wall_ms() / MINUTE_MS == minute;
    const sums s = read_stats();
    assert_int_equal(s.done, TYPES);
    assert_int_equal(s.runs, TYPES);
    if (of_one_minute) { /* else each minute has its own places */
        assert_int_equal(s.types, PLACES + 1);
        assert_int_equal(s.others, TYPES - PLACES);
    }
}

/* What it has sent stays, and no counter loses anything. */
static void a_worker_that_is_killed_loses_no_more_than_its_minute(void **state)
{
    (void)state;
    hf_try_worker("worker @ -c w.yaml");
    enqueue_types(5);
    EVENTUALLY(HISTORY_MS, read_stats().done == 5);
    enqueue_types(7);
    EVENTUALLY(SOON_MS, hf_try_figure("default", "done") == 12);
    hf_proc_kill(&hf_try_proc);
    assert_int_equal(hf_try_figure("default", "done"), 12);
    const long long told = read_stats().done;
    assert_in_range(told, 5, 12);
    hf_try_worker("worker @ -c w.yaml"); /* the next one begins anew, and counts on */
    enqueue_types(3);
    EVENTUALLY(SOON_MS, hf_try_figure("default", "done") == 15);
    hf_proc_signal(&hf_try_proc, SIGTERM);
    assert_true(hf_proc_wait(&hf_try_proc, SOON_MS));
    assert_int_equal(read_stats().done, told + 3);
}

static void numbers_are_as_short_as_they_can_be(void **state)
{
    (void)state;
    enqueue_types(3);
    hf_try_worker("worker @ -c w.yaml");
    EVENTUALLY(HISTORY_MS, read_stats().done == 3);
    hf_try_run("stats @ --json", 0);
    for (const char *at = strstr(hf_try_fixture.out, "p50_ms\":"); at != NULL;
         at = strstr(at + 1, "p50_ms\":")) {
        const char *number = strchr(at, ':') + 1, *point = strchr(number, '.');
        assert_non_null(point);
        assert_true(point[2] == ',' && point - number < 8);
    }
}

#define TEST(name) cmocka_unit_test_setup(name, hf_try_clean)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_worker_tells_64_types_and_the_others),
        TEST(a_worker_that_is_killed_loses_no_more_than_its_minute),
        TEST(numbers_are_as_short_as_they_can_be),
    };
    hf_try_up(HF_TEST_COMMAND, HANDLERS);
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    hf_try_down();
    return failures;
}
