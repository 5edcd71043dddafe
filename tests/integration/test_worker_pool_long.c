/* test_worker_pool_long.c - what a pool does with many jobs: each gets its turn, and none
 * leaves memory behind. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "tests/support/pool_test.h"

enum { LONG_MS = 30000, MANY = 50000, FEW = 10000, AT_ONCE = 1000 };
enum { BATCH = 400, STREAM_MS = 60000 };
#ifdef HF_SANITIZED
enum { GROWTH_KIB = 256 * 1024 }; /* the sanitizer keeps memory that was freed */
#else
enum { GROWTH_KIB = 4096 };
#endif

static const hf_worker_opts opts = {HF_WORKER_OPTS_INIT, .lease_ms = LONG_MS,
                                    .minder = HF_TEST_COMMAND};
/* Its ticks come each 500 ms. */
static const hf_worker_opts quick = {HF_WORKER_OPTS_INIT, .lease_ms = 6000,
                                     .minder = HF_TEST_COMMAND};

/* Each may take the free slots, but for those of a process that it needs for itself. The
 * stream has no end before the suspect has had its turns. */
static void a_suspect_gets_its_turn_beside_a_stream_of_others(void **state)
{
    (void)state;
    long long n = 0;
    start(&quick, pool_of(1, ARGS("parallel=4")), true);
    hf_pool_fixture_put_many(&f, "n", "sleep", "20", BATCH);
    put("bad", "late-exit", "1");
    uint64_t until_ms = hf_test_fair_ms() + STREAM_MS;
    while (strstr(hf_pool_fixture_record(&f, "bad"), "\"reason\":\"poison\"") == NULL) {
        assert_true(hf_test_fair_ms() < until_ms);
        while (n * BATCH < meta("done") + BATCH) {
            char prefix[24];
            snprintf(prefix, sizeof prefix, "m%lld", ++n);
            hf_pool_fixture_put_many(&f, prefix, "sleep", "20", BATCH);
        }
        hf_test_pause_ms(10);
    }
    EVENTUALLY(STREAM_MS, meta("done") == (n + 1) * BATCH);
}

static long resident_kib(pid_t pid)
{
    char path[64], text[256];
    long size, pages = 0;
    snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
    (void)!sscanf(hf_read_file(path, text, sizeof text), "%ld %ld", &size, &pages);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static void put_until(unsigned from, unsigned to)
{
    char prefix[24];
    for (unsigned i = from; i < to; i += AT_ONCE) {
        snprintf(prefix, sizeof prefix, "n%u", i);
        hf_pool_fixture_put_many(&f, prefix, "noop", "payload", AT_ONCE);
        EVENTUALLY(60000, meta("done") + 3000 > i);
    }
    EVENTUALLY(60000, meta("done") == to);
}

static void many_jobs_leave_no_memory_behind(void **state)
{
    (void)state;
    hf_pool pool = pool_of(2, NULL);
    argv[1] = "parallel=8"; /* and no log */
    argv[2] = NULL;
    start(&opts, pool, true);
    put_until(0, FEW);
    long before = resident_kib(getpid());
    put_until(FEW, MANY);
    long after = resident_kib(getpid());
    if (after > before + GROWTH_KIB)
        fail_msg("%ld KiB, then %ld KiB", before, after);
    assert_int_equal(said("outcome=crashed"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        HF_POOL_TEST(a_suspect_gets_its_turn_beside_a_stream_of_others, &f),
        HF_POOL_TEST(many_jobs_leave_no_memory_behind, &f),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
