/* test_runs.c - what workers tell about runs while a viewer watches: the stream, its
 * bounds and its end, and how an administrator reads it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "queue/ran.h"
#include "queue_scripts.h"
#include "tests/support/admin.h"
#include "tests/support/runs_test.h"
#include "tests/support/shards.h"

enum {
    MANY = 230, /* runs that end in one second */
    ENTRIES = 600
};

/* ---- what a worker tells ---- */

static int64_t ends_told(void)
{
    int64_t n = 0;
    for (size_t i = 0; i < seen.n; i++)
        n += seen.runs[i].end != HF_RUN_GOES_ON;
    return n;
}

static void a_run_is_told_when_it_goes_on_and_when_it_ends(void **state)
{
    (void)state;
    watch();
    start(NULL);
    put("a", "gate");
    put("b", "gate");
    put("c", "heed");
    const int64_t from = hf_queue_fixture_now(&fixture);
    EVENTUALLY(SOON_MS, told("a") != NULL && told("b") != NULL && told("c") != NULL);
    const hf_reported_run *a = told("a");
    assert_int_equal(a->end, HF_RUN_GOES_ON);
    assert_string_equal(a->type, "t");
    assert_int_equal(a->run, 1);
    assert_true(a->start_ms > from - 1000 && a->start_ms < from + 2000);
    assert_true(a->slot < 3 && told("b")->slot < 3 && told("c")->slot < 3);
    assert_true(a->slot != told("b")->slot && a->slot != told("c")->slot);
    assert_true(told("b")->slot != told("c")->slot);
    atomic_store(&worker.gate, true);
    EVENTUALLY(SOON_MS, has_ended("a", HF_RUN_DONE));
    EVENTUALLY(SOON_MS, has_ended("c", HF_RUN_FAILED));
    assert_true(told("a")->ran_ms >= HF_RAN_LONG_MS);
    assert_string_equal(seen.workers[0], seen.workers[seen.n - 1]);
}

/* The gate is open: they take no time. */
static void short_runs_are_counted_alone(void **state)
{
    (void)state;
    watch();
    start(NULL);
    put("ok1", "ok");
    put("ok2", "short");
    put("dead", "dead");
    /* And on a busy machine one may take long. */
    EVENTUALLY(SOON_MS, (look(), seen.ok + seen.failed + ends_told() == 3));
    for (size_t i = 0; i < seen.n; i++)
        assert_true(seen.runs[i].ran_ms >= HF_RAN_LONG_MS);
    assert_in_range(seen.ok, 2 - ends_told(), 2);
}

static void the_run_counts_failures_and_crashes(void **state)
{
    (void)state;
    watch();
    put("a", "gate");
    hf_fixture_command(redis, "HSET hf:{q}:crashes a 2"); /* as after two takeovers */
    start(NULL);
    EVENTUALLY(SOON_MS, told("a") != NULL);
    assert_int_equal(told("a")->run, 3);
    atomic_store(&worker.gate, true);
    EVENTUALLY(SOON_MS, has_ended("a", HF_RUN_DONE));
}

static void a_run_that_is_given_back_or_cancelled_says_so(void **state)
{
    hf_job_info info = {HF_JOB_INFO_INIT};
    (void)state;
    watch();
    start(NULL);
    put("doze", "doze");
    put("cancelled", "gate");
    EVENTUALLY(SOON_MS, told("doze") != NULL && told("cancelled") != NULL);
    assert_int_equal(hf_admin_cancel(fixture.admin, "q", "cancelled", &info, detail),
                     HF_RUNNING);
    EVENTUALLY(SOON_MS, has_ended("cancelled", HF_RUN_CANCELLED) ||
                            has_ended("cancelled", HF_RUN_DONE));
    atomic_store(&worker.gate, true);
    EVENTUALLY(SOON_MS, has_ended("doze", HF_RUN_RELEASED));
}

static void a_lane_is_free_again_when_its_run_has_ended(void **state)
{
    (void)state;
    watch();
    start(NULL);
    put("a", "gate");
    EVENTUALLY(SOON_MS, told("a") != NULL);
    atomic_store(&worker.gate, true);
    EVENTUALLY(SOON_MS, has_ended("a", HF_RUN_DONE));
    atomic_store(&worker.gate, false);
    put("b", "gate");
    EVENTUALLY(SOON_MS, told("b") != NULL);
    assert_int_equal(told("a")->slot, 0);
    assert_int_equal(told("b")->slot, 0);
}

/* Its payload is how many ms it takes. */
static hf_verdict take_time(hf_run *run, void *arg)
{
    (void)arg;
    hf_test_pause_ms((unsigned)strtoul(hf_run_payload(run, NULL), NULL, 10));
    return HF_VERDICT_DONE;
}

/* The second began before the end of the first, and is told after it. */
static void runs_in_one_lane_do_not_overlap(void **state)
{
    (void)state;
    forget();
    watch();
    hf_worker_fixture_start_own(&worker, redis->url,
                                &(hf_worker_opts){HF_WORKER_OPTS_INIT, .lease_ms = 10000},
                                0, take_time, NULL);
    put("a", "6000");
    EVENTUALLY(SOON_MS, hf_fixture_number(redis, "ZCARD hf:{q}:running") == 1);
    ALWAYS(1500, true);
    put("b", "6000");
    EVENTUALLY(SOON_MS, has_ended("a", HF_RUN_DONE) && has_ended("b", HF_RUN_DONE));
    assert_true(told("a")->start_ms + told("a")->ran_ms > told("b")->start_ms);
    assert_int_equal(told("a")->slot, 0);
    assert_int_equal(told("b")->slot, 1);
}

static void an_entry_has_200_runs_and_counts_the_others(void **state)
{
    char ids[MANY][16];
    (void)state;
    watch();
    start(&(hf_worker_opts){HF_WORKER_OPTS_INIT, .concurrency = MANY, .lease_ms = 20000});
    for (size_t i = 0; i < MANY; i++) {
        (void)snprintf(ids[i], sizeof ids[i], "id-%04zu", i);
        put(ids[i], "gate");
    }
    EVENTUALLY(SOON_MS, atomic_load(&worker.inside) == MANY);
    EVENTUALLY(SOON_MS, (watch(), look(), seen.n >= MANY)); /* all go on */
    assert_int_equal(seen.cut, 0);
    assert_true(seen.most <= HF_RAN_MAX);
    forget();
    seen.place.since_ms = hf_queue_fixture_now(&fixture);
    atomic_store(&worker.gate, true);
    EVENTUALLY(SOON_MS, (look(), (int64_t)seen.n + seen.cut == MANY));
    assert_true(seen.most <= HF_RAN_MAX);
    assert_true(seen.cut > 0);
}

static void what_ended_last_is_told_when_the_worker_ends(void **state)
{
    (void)state;
    watch();
    start(NULL);
    put("a", "gate");
    EVENTUALLY(SOON_MS, told("a") != NULL);
    assert_int_equal(hf_worker_fixture_stop(&worker), HF_OK); /* it gives way */
    const hf_reported_run *a = told("a");
    assert_true(a->end != HF_RUN_GOES_ON);
}

/* ---- Redis ---- */

static const char *add(const char *entry)
{
    return hf_fixture_command(redis, "EVAL %s 1 hf:{q}: %s",
                              (const char *)hf_lua_queue_runs.text, entry);
}

static void the_key_that_says_that_somebody_looks_ends(void **state)
{
    (void)state;
    watch();
    const long long left = hf_fixture_number(redis, "PTTL hf:{/}:watch");
    assert_true(left > 19000 && left <= 20000);
    hf_fixture_clock_jump(redis, 20001);
    assert_int_equal(hf_fixture_number(redis, "EXISTS hf:{/}:watch"), 0);
}

static void the_stream_has_an_end_and_about_600_entries(void **state)
{
    (void)state;
    for (int i = 0; i < 3 * ENTRIES; i++)
        (void)add("w 1 1 0 0\n");
    const long long n = stream();
    assert_true(n >= ENTRIES && n < ENTRIES + 100); /* Redis drops whole nodes */
    const long long left = hf_fixture_number(redis, "PTTL hf:{q}:runs");
    assert_true(left > 59000 && left <= 60000);
    hf_fixture_clock_jump(redis, 60001);
    assert_int_equal(hf_fixture_number(redis, "EXISTS hf:{q}:runs"), 0);
}

static void a_text_that_is_no_entry_is_refused(void **state)
{
    static const char *const texts[] = {"", "w 1 2 3\n", "w 1 2 3 4", "w/x 1 2 3 4\n",
                                        "w 1 2 3 4\nid t 1 0 1 - -"};
    static char large[100000];
    (void)state;
    for (size_t i = 0; i < HF_COUNT(texts); i++)
        assert_non_null(strstr(add(texts[i]), "expected an entry of runs"));
    const int n = snprintf(large, sizeof large, "w 1 2 3 4\n");
    memset(large + n, 'x', sizeof large - 2 - (size_t)n);
    large[sizeof large - 2] = '\n';
    assert_non_null(strstr(add(large), "expected an entry of runs"));
    assert_int_equal(stream(), 0);
}

static void the_doctor_knows_the_keys(void **state)
{
    (void)state;
    watch();
    (void)add("w 1 1 0 0\n");
    hf_test_audit(redis, false);
}

/* ---- the administrator ---- */

static void an_administrator_reads_pages(void **state)
{
    static char entry[70000];
    size_t calls = 0;
    (void)state;
    forget();
    size_t len = (size_t)snprintf(entry, sizeof entry, "w 1 1 0 0\n");
    while (len < 60000)
        len += (size_t)snprintf(entry + len, sizeof entry - len,
                                "id-%0100zu t 1 0 1 2000 d\n", len);
    for (int i = 0; i < 50; i++)
        (void)add(entry);
    do {
        const size_t before = seen.entries;
        look();
        calls++;
        assert_true(seen.entries > before);
        seen.n = 0;
    } while (seen.place.more);
    assert_int_equal(seen.entries, 50);
    assert_true(calls > 1);
    look();
    assert_int_equal(seen.entries, 50);
    (void)add("w 1 1 0 0\n");
    look();
    assert_int_equal(seen.entries, 51);
}

static void an_administrator_reads_what_is_new_enough(void **state)
{
    (void)state;
    forget();
    (void)add("w 1 1 0 0\n");
    hf_fixture_clock_jump(redis, 1000);
    seen.place.since_ms = hf_queue_fixture_now(&fixture);
    look();
    assert_int_equal(seen.entries, 0);
    (void)add("w 2 1 0 0\n");
    look();
    assert_int_equal(seen.entries, 1);
    assert_true(seen.place.now_ms >= seen.place.since_ms);
}

static void what_another_program_has_written_is_skipped(void **state)
{
    (void)state;
    forget();
    hf_fixture_command(redis, "XADD hf:{q}:runs * e nonsense");
    hf_fixture_command(redis, "XADD hf:{q}:runs * other thing");
    hf_fixture_command(redis, "EXPIRE hf:{q}:runs 60");
    (void)add("w 1 1 0 0\nnonsense\nid t 1 0 1 2000 d\n");
    look();
    assert_int_equal(seen.entries, 1);
    assert_int_equal(seen.n, 1);
}

static void a_place_that_is_none_is_refused(void **state)
{
    hf_runs_place none = {.size = 0}, place = {HF_RUNS_PLACE_INIT, .since_ms = -1};
    (void)state;
    assert_int_equal(hf_admin_runs(fixture.admin, "q", &none, on_entry, NULL, detail),
                     HF_INVALID);
    assert_int_equal(hf_admin_runs(fixture.admin, "q", &place, on_entry, NULL, detail),
                     HF_INVALID);
    assert_int_equal(
        hf_admin_runs(fixture.admin, "q/", &seen.place, on_entry, NULL, detail),
        HF_INVALID);
}

static void the_shards_of_a_queue_are_read_each(void **state)
{
    hf_shards shards;
    (void)state;
    forget();
    hf_test_divide(redis, "wide", 4, &shards);
    for (unsigned i = 0; i < 4; i++) {
        hf_queue whole, shard;
        assert_int_equal(hf_queue_init(&whole, "hf", "wide"), HF_OK);
        hf_shards_queue(&shards, &whole, i, &shard);
        for (unsigned k = 0; k <= i; k++)
            hf_fixture_command(redis, "EVAL %s 1 %s %s",
                               (const char *)hf_lua_queue_runs.text, shard.prefix,
                               "w 1 1 0 0\n");
    }
    look_at("wide");
    assert_int_equal(seen.entries, 1 + 2 + 3 + 4);
    look_at("wide");
    assert_int_equal(seen.entries, 1 + 2 + 3 + 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_run_is_told_when_it_goes_on_and_when_it_ends),
        CASE(short_runs_are_counted_alone),
        CASE(the_run_counts_failures_and_crashes),
        CASE(a_run_that_is_given_back_or_cancelled_says_so),
        CASE(a_lane_is_free_again_when_its_run_has_ended),
        CASE(runs_in_one_lane_do_not_overlap),
        CASE(an_entry_has_200_runs_and_counts_the_others),
        CASE(what_ended_last_is_told_when_the_worker_ends),
        CASE(the_key_that_says_that_somebody_looks_ends),
        CASE(the_stream_has_an_end_and_about_600_entries),
        CASE(a_text_that_is_no_entry_is_refused),
        CASE(the_doctor_knows_the_keys),
        CASE(an_administrator_reads_pages),
        CASE(an_administrator_reads_what_is_new_enough),
        CASE(what_another_program_has_written_is_skipped),
        CASE(a_place_that_is_none_is_refused),
        CASE(the_shards_of_a_queue_are_read_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
