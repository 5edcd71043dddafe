/* test_ready.c - what a long-lived program offers in its first frame. */
#include "worker/pool/ready.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "tests/support/eventually.h"

static hf_ready *read_line(const char *line)
{
    hf_ready *ready = NULL;
    char detail[HF_DETAIL_SIZE] = "";
    if (hf_ready_read(&ready, line, strlen(line), detail) != HF_OK)
        fail_msg("%s: %s", line, detail);
    return ready;
}

static void refused(const char *line, const char *wanted)
{
    hf_ready *ready = NULL;
    char detail[HF_DETAIL_SIZE] = "";
    hf_err err = hf_ready_read(&ready, line, strlen(line), detail);
    if (err != HF_INVALID || strcmp(detail, wanted) != 0)
        fail_msg("%s: expected '%s', found '%s'", line, wanted, detail);
    assert_null(ready);
}

static void the_options_of_a_type_are_read(void **state)
{
    (void)state;
    hf_ready *ready = read_line(
        "{\"t\":\"ready\",\"v\":1,\"client\":\"python 0.2.0\",\"parallel\":16,\"types\":["
        "{\"type\":\"b\"},"
        "{\"type\":\"a\",\"queue\":\"mail\",\"timeout\":30000,\"max_attempts\":5,"
        "\"keep\":3600000,\"on_dead\":\"order.failed\",\"retry\":{\"backoff\":\"linear\","
        "\"base\":1000,\"cap\":60000,\"jitter\":0.5},\"other\":1e999},"
        "{\"type\":\"c\",\"timeout\":0,\"keep\":0,\"retry\":{\"jitter\":0}}]}");
    assert_string_equal(ready->client, "python 0.2.0");
    assert_int_equal(ready->parallel, 16);
    assert_int_equal(ready->n_types, 3);
    assert_int_equal(ready->n_schedules, 0);
    const hf_ready_type *t = &ready->types[0];
    assert_string_equal(t->type, "a");
    assert_string_equal(t->queue, "mail");
    assert_string_equal(t->on_dead, "order.failed");
    assert_true(t->has_timeout && t->has_backoff);
    assert_int_equal(t->timeout_ms, 30000);
    assert_int_equal(t->max_attempts, 5);
    assert_int_equal(t->keep_ms, 3600000);
    assert_int_equal(t->backoff, HF_BACKOFF_LINEAR);
    assert_int_equal(t->backoff_base_ms, 1000);
    assert_int_equal(t->backoff_cap_ms, 60000);
    assert_true(t->backoff_jitter > 0.4 && t->backoff_jitter < 0.6);
    t = hf_ready_find(ready, "b");
    assert_ptr_equal(t, &ready->types[1]);
    assert_true(!t->has_timeout && !t->has_backoff && t->max_attempts == 0);
    assert_true(t->keep_ms == 0 && t->queue[0] == '\0' && t->on_dead[0] == '\0');
    t = hf_ready_find(ready, "c");
    assert_true(t->has_timeout && t->timeout_ms == 0);
    assert_int_equal(t->keep_ms, HF_KEEP_NONE);
    assert_true(t->backoff_jitter < 0);
    assert_null(hf_ready_find(ready, "d"));
    hf_ready_free(ready);
}

static void schedules_are_read(void **state)
{
    (void)state;
    hf_ready *ready = read_line(
        "{\"v\":1,\"types\":[{\"type\":\"report\"}],\"schedules\":["
        "{\"id\":\"often\",\"every\":5000,\"job\":{\"type\":\"report\",\"payload\":"
        "\"a\\nb\"}},"
        "{\"id\":\"nightly\",\"queue\":\"default\",\"cron\":\"0 3 * * *\",\"tz\":\"UTC\","
        "\"missed\":\"all\",\"overlap\":\"cancel\",\"catch_up\":60000,\"jitter\":1000,"
        "\"start\":1,\"end\":1790000000000,\"limit\":9,\"rev\":3,\"job\":{"
        "\"type\":\"report\",\"payload\":{ \"day\" : 1.50 },\"priority\":\"low\","
        "\"max_attempts\":2,\"timeout\":1000,\"keep\":60000,\"start_within\":5000,"
        "\"expired\":\"dead\",\"on_dead\":\"failed\"}}]}");
    assert_int_equal(ready->n_schedules, 2);
    const hf_schedule *s = &ready->schedules[0].schedule;
    assert_string_equal(s->id, "nightly");
    assert_string_equal(s->cron, "0 3 * * *");
    assert_string_equal(s->tz, "UTC");
    assert_int_equal(s->missed, HF_MISSED_ALL);
    assert_int_equal(s->overlap, HF_OVERLAP_CANCEL);
    assert_int_equal(s->catch_up_ms, 60000);
    assert_int_equal(s->jitter_ms, 1000);
    assert_true(s->start_ms == 1 && s->end_ms == INT64_C(1790000000000));
    assert_true(s->limit == 9 && s->rev == 3 && s->every_ms == 0);
    assert_string_equal(s->type, "report");
    assert_int_equal(s->payload_len, 12);
    assert_memory_equal(s->payload, "{\"day\":1.50}", 12);
    assert_int_equal(s->priority, HF_PRIORITY_LOW);
    assert_int_equal(s->expired, HF_EXPIRED_DEAD);
    assert_true(s->max_attempts == 2 && s->timeout_ms == 1000);
    assert_true(s->keep_ms == 60000 && s->start_within_ms == 5000);
    assert_string_equal(s->on_dead, "failed");
    s = &ready->schedules[1].schedule;
    assert_string_equal(s->id, "often");
    assert_true(s->queue == NULL && s->cron == NULL && s->every_ms == 5000);
    assert_memory_equal(s->payload, "a\nb", 3);
    hf_ready_free(ready);
}

static void another_version_is_refused_with_both(void **state)
{
    (void)state;
    refused("{\"types\":[]}",
            "expected version 1 of the protocol pipe as `v`, found none");
    refused("{\"v\":2}", "expected version 1 of the protocol pipe as `v`, found 2");
    refused(
        "{\"v\":\"1\"}",
        "ready: expected a whole number from 1 to 9007199254740992 as `v`, found \"1\"");
}

static void what_is_out_of_bounds_is_refused_by_name(void **state)
{
    (void)state;
    refused("{\"v\":1}", "expected at least one entry in `types`");
    refused("{\"v\":1,\"types\":{}}", "ready: expected an array as `types`, found {}");
    refused("{\"v\":1,\"types\":[7]}",
            "types[0]: expected an object as `types`, found 7");
    refused("{\"v\":1,\"parallel\":0}",
            "ready: expected a whole number from 1 to 1024 as `parallel`, found 0");
    refused("{\"v\":1,\"client\":7}", "ready: expected a text as `client`, found 7");
    refused("{\"v\":1,\"types\":[{\"type\":\"a\"},{}]}",
            "types[1]: expected 1 to 128 of A-Z a-z 0-9 . _ : - as `type`, found none");
    refused(
        "{\"v\":1,\"types\":[{\"type\":\"a b\"}]}",
        "types[0]: expected 1 to 128 of A-Z a-z 0-9 . _ : - as `type`, found \"a b\"");
    refused("{\"v\":1,\"types\":[{\"type\":\"*\"}]}",
            "types[0]: expected 1 to 128 of A-Z a-z 0-9 . _ : - as `type`, found \"*\"");
    refused("{\"v\":1,\"types\":[{\"type\":\"a\"},{\"type\":\"b\"},{\"type\":\"a\"}]}",
            "expected each type once, found 'a' twice");
    refused("{\"v\":1,\"types\":[{\"type\":\"a\",\"timeout\":\"30s\"}]}",
            "type 'a': expected a whole number from 0 to 2592000000 as `timeout`, found "
            "\"30s\"");
    refused(
        "{\"v\":1,\"types\":[{\"type\":\"a\",\"max_attempts\":0}]}",
        "type 'a': expected a whole number from 1 to 1000000 as `max_attempts`, found "
        "0");
    refused("{\"v\":1,\"types\":[{\"type\":\"a\",\"queue\":\"\"}]}",
            "type 'a': expected 1 to 128 of A-Z a-z 0-9 . _ : - as `queue`, found \"\"");
    refused("{\"v\":1,\"types\":[{\"type\":\"a\",\"retry\":7}]}",
            "type 'a': expected an object as `retry`, found 7");
    refused("{\"v\":1,\"types\":[{\"type\":\"a\",\"retry\":{\"backoff\":\"fast\"}}]}",
            "type 'a': expected exponential, linear or constant as `backoff`, found "
            "\"fast\"");
    refused("{\"v\":1,\"types\":[{\"type\":\"a\",\"retry\":{\"base\":9,\"cap\":8}}]}",
            "type 'a': expected not less than `base` as `cap`, found 8");
    refused("{\"v\":1,\"types\":[{\"type\":\"a\",\"retry\":{\"jitter\":1.01}}]}",
            "type 'a': expected 0 to 1 as `jitter`, found 1.01");
}

static void a_name_is_never_cut(void **state)
{
    char line[512], name[HF_NAME_MAX + 8];
    hf_ready *ready = NULL;
    char detail[HF_DETAIL_SIZE];
    (void)state;
    memset(name, 'x', sizeof name);
    memcpy(name + HF_NAME_MAX, "\xC3\xA9", 3);
    (void)snprintf(line, sizeof line, "{\"v\":1,\"types\":[{\"type\":\"%s\"}]}", name);
    assert_int_equal(hf_ready_read(&ready, line, strlen(line), detail), HF_INVALID);
    name[HF_NAME_MAX] = '\0';
    (void)snprintf(line, sizeof line, "{\"v\":1,\"types\":[{\"type\":\"%s\"}]}", name);
    hf_ready_free(read_line(line));
}

static void a_schedule_is_checked(void **state)
{
    (void)state;
#define WITH(schedule)                                                                   \
    "{\"v\":1,\"types\":[{\"type\":\"a\"}],\"schedules\":[" schedule "]}"
    refused(WITH("{}"),
            "schedules[0]: expected 1 to 128 of A-Z a-z 0-9 . _ : - as `id`, found none");
    refused(
        WITH("{\"id\":\"s\"}"),
        "schedule 's': expected 1 to 128 of A-Z a-z 0-9 . _ : - as `type`, found none");
    refused(WITH("{\"id\":\"s\",\"job\":[]}"),
            "schedule 's': expected an object as `job`, found []");
    refused(WITH("{\"id\":\"s\",\"job\":{\"type\":\"a\"}}"),
            "schedule 's': expected either cron or every, found none");
    refused(WITH("{\"id\":\"s\",\"every\":5,\"job\":{\"type\":\"a\"}}"),
            "schedule 's': expected a whole number from 100 to 315360000000 as `every`, "
            "found 5");
    refused(WITH("{\"id\":\"s\",\"cron\":\"0 3 * *\",\"job\":{\"type\":\"a\"}}"),
            "schedule 's': cron: expected 5 fields (minute hour day month weekday) or 6 "
            "(second first), found '0 3 * *'");
    refused(WITH("{\"id\":\"s\",\"every\":500,\"job\":{\"type\":\"a\",\"payload\":"
                 "\"\\ud800\"}}"),
            "schedule 's': expected UTF-8 as `payload`, found none");
    refused(WITH("{\"id\":\"s\",\"every\":500,\"job\":{\"type\":\"a\"}},"
                 "{\"id\":\"s\",\"every\":600,\"queue\":\"default\",\"job\":{\"type\":"
                 "\"a\"}}"),
            "expected each schedule once, found 's' twice");
}

static void the_order_and_the_client_do_not_matter(void **state)
{
    (void)state;
    hf_ready *a =
        read_line("{\"v\":1,\"client\":\"x\",\"types\":[{\"type\":\"a\"},{\"type\":"
                  "\"b\",\"keep\":1}],\"schedules\":[{\"id\":\"s\",\"every\":500,"
                  "\"job\":{\"type\":\"a\",\"payload\":[1]}}]}");
    hf_ready *b =
        read_line("{\"v\":1,\"client\":\"y\",\"types\":[{\"keep\":1,\"type\":\"b\"},{"
                  "\"type\":\"a\"}],\"schedules\":[{\"every\":500,\"id\":\"s\","
                  "\"job\":{\"payload\":\"[1]\",\"type\":\"a\"}}]}");
    assert_true(hf_ready_same(a, b));
    static const char *const others[] = {
        "{\"v\":1,\"types\":[{\"type\":\"a\"}]}",
        "{\"v\":1,\"parallel\":2,\"types\":[{\"type\":\"a\"},{\"type\":\"b\",\"keep\":1}]"
        "}",
        "{\"v\":1,\"types\":[{\"type\":\"a\"},{\"type\":\"b\",\"keep\":2}],\"schedules\":"
        "[{"
        "\"id\":\"s\",\"every\":500,\"job\":{\"type\":\"a\",\"payload\":[1]}}]}",
        "{\"v\":1,\"types\":[{\"type\":\"a\"},{\"type\":\"b\",\"keep\":1}],\"schedules\":"
        "[{"
        "\"id\":\"s\",\"every\":500,\"job\":{\"type\":\"a\",\"payload\":[2]}}]}",
    };
    for (size_t i = 0; i < HF_COUNT(others); i++) {
        hf_ready *other = read_line(others[i]);
        assert_false(hf_ready_same(a, other));
        hf_ready_free(other);
    }
    hf_ready_free(a);
    hf_ready_free(b);
}

/* 1000 types with three options each are more than a line of another kind may have. */
static void a_thousand_types_are_read(void **state)
{
    static char line[200000];
    size_t len = (size_t)snprintf(line, sizeof line, "{\"v\":1,\"types\":[");
    (void)state;
    for (int i = HF_READY_TYPES_MAX; i > 0; i--)
        len += (size_t)snprintf(line + len, sizeof line - len,
                                "{\"type\":\"some.type.%04d\",\"timeout\":30000,"
                                "\"max_attempts\":5,\"keep\":3600000},",
                                i);
    len += (size_t)snprintf(line + len - 1, sizeof line - len, "]}") - 1;
    hf_ready *ready = read_line(line);
    assert_true(len > 65536);
    assert_int_equal(ready->n_types, HF_READY_TYPES_MAX);
    assert_string_equal(ready->types[0].type, "some.type.0001");
    assert_non_null(hf_ready_find(ready, "some.type.1000"));
    hf_ready_free(ready);
    (void)snprintf(line + len - 2, sizeof line - len, ",{\"type\":\"one\"}]}");
    refused(line, "expected at most 1000 types, found 1001");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_options_of_a_type_are_read),
        cmocka_unit_test(schedules_are_read),
        cmocka_unit_test(another_version_is_refused_with_both),
        cmocka_unit_test(what_is_out_of_bounds_is_refused_by_name),
        cmocka_unit_test(a_name_is_never_cut),
        cmocka_unit_test(a_schedule_is_checked),
        cmocka_unit_test(the_order_and_the_client_do_not_matter),
        cmocka_unit_test(a_thousand_types_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
