/* test_vectors.c - the vectors that clients of other languages are tested with say what
 * the library does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/id.h"
#include "base/json_text.h"
#include "cli/enqueue/bulk_line.h"
#include "queue/record.h"
#include "queue/shards.h"
#include "redis/slots.h"
#include "tests/support/vectors.h"

enum { PAYLOAD_MAX = 1 << 20 };
#define PATH(name) HF_TEST_SOURCE "/tests/vectors/" name ".json"

/* The job as it is written: no parser has made values of it. */
static void raw_job(const char *text, const char **job, size_t *len)
{
    hf_json_scan scan;
    hf_json_member m;
    *job = NULL;
    hf_json_scan_start(&scan, text, strlen(text));
    while (hf_json_scan_next(&scan, &m)) {
        if (m.key_len == 5 && memcmp(m.key, "\"job\"", 5) == 0) {
            *job = m.value;
            *len = m.value_len;
        }
    }
    assert_non_null(*job);
}

static void check_record(const json_t *entry, const char *text, void *arg)
{
    char detail[HF_BULK_DETAIL_SIZE];
    hf_bulk_line line;
    const char *raw;
    size_t len = 0;
    (void)arg;
    raw_job(text, &raw, &len);
    if (hf_bulk_line_read(&line, raw, len, PAYLOAD_MAX, detail) != HF_OK)
        fail_msg("%s: %s", detail, text);
    hf_buf out;
    hf_buf_init(&out, PAYLOAD_MAX);
    hf_record_write(&out, &line.job,
                    json_integer_value(json_object_get(entry, "created")));
    hf_buf_add(&out, "", 1);
    assert_string_equal(out.data, json_string_value(json_object_get(entry, "record")));
    assert_string_equal(json_string_value(json_object_get(entry, "script")),
                        hf_record_has_options(&line.job) ? "enqueue_with" : "enqueue");
    hf_buf_done(&out);
    hf_bulk_line_done(&line);
}

static void records(void **state)
{
    (void)state;
    hf_vectors_read(PATH("records"), "records", 17, check_record, NULL);
}

static void check_id(const json_t *entry, const char *text, void *arg)
{
    char id[HF_NEW_ID_SIZE], *last = arg;
    (void)text;
    int64_t ms = json_integer_value(json_object_get(entry, "ms"));
    hf_id_text((uint64_t)ms,
               (uint64_t)json_integer_value(json_object_get(entry, "number")), id);
    assert_string_equal(id, json_string_value(json_object_get(entry, "id")));
    assert_true(strcmp(last, id) < 0);
    if (ms < INT64_C(1800000000000)) /* of a later one the clock of this test decides */
        assert_true(hf_id_made_ms(id) == ms);
    memcpy(last, id, sizeof id);
}

static void ids_rise(void **state)
{
    char last[HF_NEW_ID_SIZE] = "";
    (void)state;
    hf_vectors_read(PATH("ids"), "ids", 9, check_id, last);
}

static void check_shard(const json_t *entry, const char *text, void *arg)
{
    const char *id = json_string_value(json_object_get(entry, "text")), *n;
    json_t *shard;
    (void)text;
    (void)arg;
    assert_int_equal(hf_slots_crc16(id, strlen(id)),
                     json_integer_value(json_object_get(entry, "crc16")));
    json_object_foreach(json_object_get(entry, "shards"), n, shard) assert_int_equal(
        hf_shard_of_id(id, (unsigned)strtoul(n, NULL, 10)), json_integer_value(shard));
}

static void shards(void **state)
{
    (void)state;
    hf_vectors_read(PATH("shards"), "shards", 7, check_shard, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records), cmocka_unit_test(ids_rise), cmocka_unit_test(shards)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
