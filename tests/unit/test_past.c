/* test_past.c - the numbers of the history: buckets, percentiles, and their text. */
#include "queue/past.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"

#define MS UINT64_C(1000000)

static void a_bucket_has_what_is_at_most_its_bound(void **state)
{
    (void)state;
    assert_int_equal(hf_past_bucket(0), 0);
    assert_int_equal(hf_past_bucket(MS), 0);
    for (unsigned n = 0; n + 1 < HF_HISTORY_BUCKETS; n++) {
        const uint64_t bound = (uint64_t)(hf_past_bound_ms(n) * (double)MS);
        assert_int_equal(hf_past_bucket(bound), n);
        assert_int_equal(hf_past_bucket(bound + 1), n + 1);
        assert_true(fabs(hf_past_bound_ms(n) - pow(2, n / 2.0)) < 1e-6);
    }
    assert_true(isinf(hf_past_bound_ms(HF_HISTORY_BUCKETS - 1)));
    assert_int_equal(hf_past_bucket(UINT64_MAX), HF_HISTORY_BUCKETS - 1);
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Times of all sizes, and true percentiles beside those of the buckets. */
static void a_percentile_is_wrong_by_19_percent_at_most(void **state)
{
    enum { N = 2000 };
    static double times[N];
    hf_rng rng = {7};
    (void)state;
    for (unsigned round = 0; round < 50; round++) {
        int64_t counts[HF_HISTORY_BUCKETS] = {0};
        const double widest = 1 + hf_rng_unit(&rng) * 14;
        for (size_t i = 0; i < N; i++) {
            times[i] = exp(0.5 + hf_rng_unit(&rng) * widest);
            counts[hf_past_bucket((uint64_t)(times[i] * (double)MS))]++;
        }
        qsort(times, N, sizeof times[0], by_size);
        for (unsigned percent = 1; percent < 100; percent++) {
            const double real = times[(size_t)ceil(percent / 100.0 * N) - 1];
            const double told = hf_past_percentile(counts, percent / 100.0);
            if (told > real * 1.1893 || told < real / 1.1893)
                fail_msg("p%u is %g, not %g", percent, real, told);
        }
    }
}

static void of_no_times_there_is_no_percentile(void **state)
{
    int64_t counts[HF_HISTORY_BUCKETS] = {0};
    (void)state;
    assert_true(hf_past_percentile(counts, 0.5) == 0);
    counts[HF_HISTORY_BUCKETS - 1] = 1;
    assert_true(hf_past_percentile(counts, 0.99) == 4194304); /* more than that */
    counts[0] = 9;
    assert_true(hf_past_percentile(counts, 0.5) == 1);
}

static void what_is_written_is_read_again(void **state)
{
    hf_past_sums sums = {.done = 12, .failed = 1, .run_ms = 48210, .wait_ms = 310}, read;
    hf_buf text;
    (void)state;
    sums.runs[7] = 3;
    sums.runs[8] = 10;
    sums.waits[0] = 11;
    sums.waits[45] = 2;
    hf_buf_init(&text, HF_PAST_TEXT_MAX);
    hf_past_write(&text, &sums);
    assert_string_equal(text.data, "d=12 f=1 R=48210 W=310 r7=3 r8=10 w0=11 w45=2");
    memset(&read, 0, sizeof read);
    hf_past_add_text(&read, text.data);
    assert_memory_equal(&read, &sums, sizeof read);
    hf_past_add_text(&read, text.data);
    assert_int_equal(read.done, 24);
    assert_int_equal(read.waits[45], 4);
    hf_buf_done(&text);
}

/* The largest sums of all buckets have room, and are cut to what Redis takes. */
static void the_longest_text_has_room(void **state)
{
    hf_past_sums sums, read = {.done = 0};
    hf_buf text;
    int64_t *all = (int64_t *)&sums;
    (void)state;
    for (size_t i = 0; i < sizeof sums / sizeof *all; i++)
        all[i] = INT64_MAX;
    hf_buf_init(&text, HF_PAST_TEXT_MAX);
    hf_past_write(&text, &sums);
    assert_int_equal(hf_buf_err(&text), HF_OK);
    hf_past_add_text(&read, text.data);
    assert_true(read.waits[45] == INT64_C(999999999999999));
    hf_buf_done(&text);
}

static void other_text_is_left_out(void **state)
{
    static const char *const texts[] = {
        "",      "d",
        "d=",    "d=x",
        "=1",    "d=-1",
        "r46=1", "r=1",
        "d3=1",  "z=1",
        "r4x=1", "r 4=1",
        "w-1=1", "d=9999999999999999999999",
        "d =1",  "r99999999999999999999=1",
    };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        hf_past_sums sums = {.done = 0};
        static const hf_past_sums none;
        hf_past_add_text(&sums, texts[i]);
        if (memcmp(&sums, &none, sizeof none) != 0)
            fail_msg("'%s' was taken", texts[i]);
    }
    hf_past_sums sums = {.done = 0};
    hf_past_add_text(&sums, "new=5 d=2 w3=1");
    assert_int_equal(sums.done, 2);
    assert_int_equal(sums.waits[3], 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bucket_has_what_is_at_most_its_bound),
        cmocka_unit_test(a_percentile_is_wrong_by_19_percent_at_most),
        cmocka_unit_test(of_no_times_there_is_no_percentile),
        cmocka_unit_test(what_is_written_is_read_again),
        cmocka_unit_test(the_longest_text_has_room),
        cmocka_unit_test(other_text_is_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
