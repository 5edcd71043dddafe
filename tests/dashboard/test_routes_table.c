/* test_routes_table.c - what each address of the API reads, and that a slip is told. */
#include "dashboard/routes_table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"

static char said[HF_ROUTE_SAID];

/* "" if all of the request is read. */
static const char *told(bool post, const char *address, const char *body)
{
    hf_http_target t;
    json_t *object = body == NULL ? NULL : json_loads(body, 0, NULL);
    said[0] = '\0';
    assert_true(hf_target_read(&t, address, ""));
    const hf_route *route = hf_route_find(&t, post);
    assert_non_null(route);
    const bool reads = hf_route_reads(route, &t, object, said);
    assert_int_equal(reads, said[0] == '\0');
    hf_target_done(&t);
    json_decref(object);
    return said;
}

static void an_unknown_field_is_named_with_those_that_are_expected(void **state)
{
    (void)state;
    assert_string_equal(told(true, "/api/v1/jobs/a/edit", "{\"delay\":5}"),
                        "unknown field 'delay': expected queue, payload, delay_ms, "
                        "at_ms or priority");
    assert_string_equal(told(true, "/api/v1/jobs/a/delete", "{\"q\":\"mail\"}"),
                        "unknown field 'q': expected queue");
    assert_string_equal(told(true, "/api/v1/queues/a/pause", "{\"for\":\"1h\"}"),
                        "unknown field 'for': expected none");
    assert_string_equal(told(true, "/api/v1/lock/revoke", "{\"name\":\"a\",\"o\":1}"),
                        "unknown field 'o': expected name or owner");
    assert_string_equal(told(true, "/api/v1/doctor", "{\"a\\u001b[2J\":null}"),
                        "unknown field 'a [2J': expected none");
}

static void an_unknown_parameter_is_named_with_those_that_are_expected(void **state)
{
    (void)state;
    assert_string_equal(told(false, "/api/v1/stats?queue=a&sinc=1h", NULL),
                        "unknown parameter 'sinc': expected queue, type or since");
    assert_string_equal(told(false, "/api/v1/workers?limit=5", NULL),
                        "unknown parameter 'limit': expected none");
    assert_string_equal(told(false, "/api/v1/running?queue=a&queue=b", NULL),
                        "queue: given twice");
    assert_string_equal(told(true, "/api/v1/jobs/a/delete?queue=mail", "{}"),
                        "unknown parameter 'queue': expected none");
}

/* A part of a name is none. */
static void names_are_compared_as_a_whole(void **state)
{
    (void)state;
    assert_string_not_equal(told(true, "/api/v1/jobs/a/edit", "{\"delay\":1}"), "");
    assert_string_not_equal(told(true, "/api/v1/jobs/a/edit", "{\"\":1}"), "");
    assert_string_not_equal(told(true, "/api/v1/jobs/a/edit", "{\"queue payload\":1}"),
                            "");
    assert_string_not_equal(told(false, "/api/v1/jobs/a?queu=b", NULL), "");
}

static void what_is_read_is_fine(void **state)
{
    (void)state;
    assert_string_equal(told(true, "/api/v1/jobs/a/edit",
                             "{\"queue\":\"q\",\"payload\":\"p\",\"delay_ms\":1,"
                             "\"at_ms\":null,\"priority\":\"low\"}"),
                        "");
    assert_string_equal(told(true, "/api/v1/queues/a/pause", "{}"), "");
    assert_string_equal(told(false,
                             "/api/v1/queues/a/jobs?state=dead&type=t&error=e&match=m"
                             "&limit=9&after=x",
                             NULL),
                        "");
    assert_string_equal(told(false, "/api/v1/overview", NULL), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_unknown_field_is_named_with_those_that_are_expected),
        cmocka_unit_test(an_unknown_parameter_is_named_with_those_that_are_expected),
        cmocka_unit_test(names_are_compared_as_a_whole),
        cmocka_unit_test(what_is_read_is_fine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
