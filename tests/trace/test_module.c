/* The module of traces: what it refuses, and how it says so. */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "tests/support/eventually.h"
#include "trace/module.h"

static void assert_refused(const char *service, const char *wanted)
{
    hf_trace_sender *sender = NULL;
    char detail[HF_DETAIL_SIZE] = "";
    const hf_trace_opts opts = {.endpoint = "http://127.0.0.1:1", .service = service};
    assert_int_equal(hf_trace_functions.open(&sender, &opts, detail), HF_CONFIG);
    assert_null(sender);
    assert_string_equal(detail, wanted);
}

static void a_service_name_is_refused_with_its_source(void **state)
{
    char name[HF_TRACE_SERVICE_MAX + 2] = "";
    (void)state;
    memset(name, 'x', sizeof name - 1);
    assert_int_equal(unsetenv("OTEL_SERVICE_NAME"), 0);
    assert_refused(name, "the service of hf_trace_opts: expected at most 255 bytes of "
                         "UTF-8, found 256 bytes");
    assert_int_equal(setenv("OTEL_SERVICE_NAME", "", 1), 0); /* as if it were not set */
    assert_refused("ab\xff",
                   "the service of hf_trace_opts: expected at most 255 bytes of "
                   "UTF-8, found 3 bytes that are not UTF-8");
    assert_int_equal(setenv("OTEL_SERVICE_NAME", name, 1), 0);
    assert_refused("holdfast", "OTEL_SERVICE_NAME: expected at most 255 bytes of UTF-8, "
                               "found 256 bytes");
    assert_int_equal(unsetenv("OTEL_SERVICE_NAME"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_service_name_is_refused_with_its_source),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
