/* test_prometheus.c - figures as Prometheus reads them. */
#include "base/prometheus.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static hf_prom out;

static int up(void **state)
{
    (void)state;
    hf_prom_begin(&out, false, 1 << 16);
    return 0;
}

static int down(void **state)
{
    (void)state;
    hf_buf_done(&out.buf);
    return 0;
}

static void reads(const char *text)
{
    assert_int_equal(hf_prom_end(&out), HF_OK);
    assert_string_equal(out.buf.data, text);
}

static void a_number_has_the_digits_that_it_needs(void **state)
{
    (void)state;
    hf_prom_family(&out, "a", HF_PROM_GAUGE, "About a.");
    hf_prom_value(&out, NULL, 0, HF_PROM_ONE);
    hf_prom_value(&out, NULL, UINT64_MAX, HF_PROM_ONE);
    hf_prom_value(&out, NULL, 1500, HF_PROM_MS);
    hf_prom_value(&out, NULL, 2000, HF_PROM_MS);
    hf_prom_value(&out, NULL, 5, HF_PROM_MS);
    hf_prom_value(&out, NULL, 1, HF_PROM_NS);
    hf_prom_value(&out, NULL, 1000050, HF_PROM_US);
    reads("# HELP a About a.\n# TYPE a gauge\na 0\na 18446744073709551615\na 1.5\na 2\n"
          "a 0.005\na 0.000000001\na 1.00005\n");
}

static void a_label_cannot_end_early(void **state)
{
    (void)state;
    const hf_prom_label labels[HF_PROM_LABELS] = {{"x", "a\"b\\c\nd"},
                                                  {"y", "\xc3\xa4\xff\xc3"}};
    hf_prom_family(&out, "a", HF_PROM_GAUGE, "About a.");
    hf_prom_value(&out, labels, 1, HF_PROM_ONE);
    reads("# HELP a About a.\n# TYPE a gauge\n"
          "a{x=\"a\\\"b\\\\c\\nd\",y=\"\xc3\xa4??\"} 1\n");
}

static void the_buckets_of_a_histogram_add_up(void **state)
{
    (void)state;
    static const uint32_t bounds[] = {5, 1000};
    static const uint64_t counts[] = {2, 0, 3};
    const hf_prom_label labels[HF_PROM_LABELS] = {{"q", "m"}};
    hf_prom_family(&out, "h_seconds", HF_PROM_HISTOGRAM, "About h.");
    hf_prom_histogram(&out, labels, bounds, counts, 2, 12500, HF_PROM_MS);
    reads("# HELP h_seconds About h.\n# TYPE h_seconds histogram\n"
          "h_seconds_bucket{q=\"m\",le=\"0.005\"} 2\n"
          "h_seconds_bucket{q=\"m\",le=\"1.0\"} 2\n"
          "h_seconds_bucket{q=\"m\",le=\"+Inf\"} 5\n"
          "h_seconds_sum{q=\"m\"} 12.5\nh_seconds_count{q=\"m\"} 5\n");
}

static void open_metrics_names_a_counter_without_its_end(void **state)
{
    (void)state;
    out.open = true;
    hf_prom_family(&out, "jobs_total", HF_PROM_COUNTER, "Jobs.");
    hf_prom_value(&out, NULL, 7, HF_PROM_ONE);
    hf_prom_family(&out, "in_total", HF_PROM_GAUGE, "No counter.");
    hf_prom_value(&out, NULL, 1, HF_PROM_ONE);
    reads("# HELP jobs Jobs.\n# TYPE jobs counter\njobs_total 7\n"
          "# HELP in_total No counter.\n# TYPE in_total gauge\nin_total 1\n# EOF\n");
}

static void a_text_that_is_too_long_is_told(void **state)
{
    (void)state;
    hf_buf_done(&out.buf);
    hf_prom_begin(&out, false, 20);
    hf_prom_family(&out, "a", HF_PROM_GAUGE, "About a.");
    assert_int_equal(hf_prom_end(&out), HF_TOOBIG);
}

static void a_reader_gets_what_it_prefers(void **state)
{
    (void)state;
    static const struct {
        const char *accept;
        bool open;
    } cases[] = {
        {NULL, false},
        {"", false},
        {"*/*", false},
        {"text/plain", false},
        {"application/openmetrics-text", true},
        {"application/openmetrics-textual", false},
        {"application/openmetrics-text;q=0", false},
        {"text/plain;version=0.0.4;q=0.5,*/*;q=0.1", false},
        {"text/plain;q=0.5, application/openmetrics-text;version=1.0.0;q=0.4", false},
        {"text/plain;q=0.25, application/openmetrics-text; version=1.0.0; q=0.75", true},
        {"application/openmetrics-text;version=1.0.0,"
         "application/openmetrics-text;version=0.0.1;q=0.75,"
         "text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
         true},
        {"text/html,,;q=,application/openmetrics-text", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (hf_prom_wants_open(cases[i].accept) != cases[i].open)
            fail_msg("%s", cases[i].accept);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, up, down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_number_has_the_digits_that_it_needs),
        CASE(a_label_cannot_end_early),
        CASE(the_buckets_of_a_histogram_add_up),
        CASE(open_metrics_names_a_counter_without_its_end),
        CASE(a_text_that_is_too_long_is_told),
        CASE(a_reader_gets_what_it_prefers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
