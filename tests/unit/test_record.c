/* test_record.c - what a record looks like, and that both ways to read one agree. */
#include "queue/record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "producer/check.h"

static hf_bytes text(const char *s)
{
    return (hf_bytes){s, strlen(s)};
}

static void assert_bytes(hf_bytes found, const char *expected)
{
    assert_int_equal(found.len, strlen(expected));
    assert_memory_equal(found.ptr, expected, found.len);
}

static void assert_written(const hf_job *job, int64_t created_ms, const char *expected)
{
    hf_buf buf;
    hf_buf_init(&buf, 1 << 20);
    hf_record_write(&buf, job, created_ms);
    assert_int_equal(hf_buf_err(&buf), HF_OK);
    assert_bytes((hf_bytes){buf.data, buf.len}, expected);
    hf_buf_done(&buf);
}

static void a_new_record_is_one_line_and_the_payload(void **state)
{
    (void)state;
    assert_written(&(hf_job){HF_JOB_INIT, .type = "email.send", .payload = "{\"a\":1}\n",
                             .payload_len = 8},
                   1700000000000,
                   "{\"type\":\"email.send\",\"created\":1700000000000}\n"
                   "{\"a\":1}\n");
    assert_written(&(hf_job){HF_JOB_INIT, .type = "t"}, 0, "{\"type\":\"t\"}\n");
    assert_written(
        &(hf_job){HF_JOB_INIT, .type = "t", .max_attempts = 3, .timeout_ms = 4000000000},
        9,
        "{\"type\":\"t\",\"created\":9,\"max_attempts\":3,"
        "\"timeout\":4000000000}\n");
    assert_written(&(hf_job){HF_JOB_INIT, .type = "t", .priority = HF_PRIORITY_HIGH}, 0,
                   "{\"type\":\"t\",\"priority\":\"high\"}\n");
    assert_written(&(hf_job){HF_JOB_INIT, .type = "t", .priority = HF_PRIORITY_LOW}, 0,
                   "{\"type\":\"t\",\"priority\":\"low\"}\n");
    assert_written(&(hf_job){HF_JOB_INIT, .type = "t", .keep_ms = 60000}, 0,
                   "{\"type\":\"t\",\"keep\":60000}\n");
    assert_written(&(hf_job){HF_JOB_INIT, .type = "t", .start_within_ms = 600000,
                             .expired = HF_EXPIRED_DEAD},
                   0, "{\"type\":\"t\",\"start_within\":600000,\"expired\":\"dead\"}\n");
    assert_written(
        &(hf_job){HF_JOB_INIT, .type = "t", .unique = "k\n\"",
                  .unique_until = HF_UNIQUE_UNTIL_START},
        0,
        "{\"unique\":\"k\\u000a\\u0022\",\"type\":\"t\",\"unique_until\":\"start\"}\n");
}

static void headers_stand_at_the_end_without_white_space(void **state)
{
    (void)state;
    assert_written(&(hf_job){HF_JOB_INIT, .type = "t", .keep_ms = 7, .awaited = true,
                             .headers = "{\n \"tenant\" : \"7 8\" }"},
                   9,
                   "{\"type\":\"t\",\"created\":9,\"keep\":7,\"awaited\":1,"
                   "\"headers\":{\"tenant\":\"7 8\"}}\n");
}

static void assert_headers(const char *line, const char *expected)
{
    hf_record record;
    assert_int_equal(hf_record_read(&record, text(line)), HF_OK);
    assert_bytes(record.headers, expected);
    assert_string_equal(record.type, "t");
    hf_record_done(&record);
}

/* By the scanner, and by the parser where a text has an escape. */
static void headers_are_read_as_json(void **state)
{
    (void)state;
    assert_headers("{\"type\":\"t\"}\n", "");
    assert_headers("{\"type\":\"t\",\"headers\":{\"a\":\"b\",\"c\":\"}{\"},\"keep\":7}\n",
                   "{\"a\":\"b\",\"c\":\"}{\"}");
    assert_headers("{\"headers\":{\"a\" : \"\\u0041\\\"\"},\"type\":\"t\"}\n",
                   "{\"a\":\"A\\\"\"}");
    assert_headers("{\"type\":\"t\",\"headers\":{\"a\":\"caf\xc3\xa9\"}}\n",
                   "{\"a\":\"caf\xc3\xa9\"}");
    assert_headers("{\"type\":\"t\",\"headers\":{}}\n", "{}");
    /* Values of other kinds are none: the name may have been in use. */
    assert_headers("{\"type\":\"t\",\"headers\":{\"a\":1}}\n", "");
    assert_headers("{\"type\":\"t\",\"headers\":{\"a\":{\"b\":\"c\"}}}\n", "");
    assert_headers("{\"type\":\"t\",\"headers\":[\"a\"]}\n", "");
    assert_headers("{\"type\":\"t\",\"headers\":7}\n", "");
    char longest[HF_HEADERS_MAX + 64];
    for (int more = 0; more < 2; more++) {
        snprintf(longest, sizeof longest,
                 "{\"type\":\"t\",\"headers\":{\"a\":\"%0*d\"}}\n",
                 HF_HEADERS_MAX - 8 + more, 0);
        hf_record record;
        assert_int_equal(hf_record_read(&record, text(longest)), HF_OK);
        assert_int_equal(record.headers.len, more ? 0 : HF_HEADERS_MAX);
        hf_record_done(&record);
    }
}

static void the_longest_header_fits(void **state)
{
    char type[HF_ID_SIZE];
    (void)state;
    memset(type, 'x', HF_NAME_MAX);
    type[HF_NAME_MAX] = '\0';
    hf_buf buf;
    hf_buf_init(&buf, 1 << 20);
    hf_record_write(
        &buf,
        &(hf_job){HF_JOB_INIT, .type = type, .max_attempts = UINT32_MAX,
                  .timeout_ms = UINT32_MAX, .priority = HF_PRIORITY_HIGH, .keep_ms = 5,
                  .start_within_ms = HF_DELAY_MAX_MS, .expired = HF_EXPIRED_DEAD,
                  .on_dead = type, .awaited = true, .replace_dead = true, .unique = "k",
                  .unique_until = HF_UNIQUE_UNTIL_START,
                  .on_conflict = HF_ON_CONFLICT_REPLACE, .unique_for_ms = HF_DELAY_MAX_MS,
                  .debounce_ms = HF_DELAY_MAX_MS, .max_wait_ms = HF_DELAY_MAX_MS,
                  .throttle_ms = HF_DELAY_MAX_MS},
        INT64_MAX);
    hf_record record;
    assert_int_equal(hf_record_read(&record, (hf_bytes){buf.data, buf.len}), HF_OK);
    assert_string_equal(record.type, type);
    assert_true(record.created_ms == INT64_MAX);
    assert_int_equal(record.max_attempts, UINT32_MAX);
    assert_int_equal(record.timeout_ms, UINT32_MAX);
    assert_int_equal(record.priority, HF_PRIORITY_HIGH);
    assert_int_equal(record.keep_ms, 5);
    hf_record_done(&record);
    hf_buf_done(&buf);
}

/* HF_JOB_OVERHEAD has room for every field of a job without options. */
static void the_longest_plain_record_is_counted(void **state)
{
    const hf_job job = {HF_JOB_INIT,
                        .type = "t",
                        .id = "i",
                        .max_attempts = UINT32_MAX,
                        .timeout_ms = UINT32_MAX,
                        .keep_ms = HF_DELAY_MAX_MS};
    hf_buf buf;
    (void)state;
    hf_buf_init(&buf, 1 << 20);
    hf_record_write(&buf, &job, HF_TIME_MAX_MS);
    assert_false(hf_record_has_options(&job));
    assert_true(strlen(job.id) + buf.len <= hf_check_job_bytes(&job));
    hf_buf_done(&buf);
}

/* All options at once, also those that exclude each other: what they add has room in
 * HF_OPTIONS_OVERHEAD and its like. */
static void the_longest_record_with_options_is_counted(void **state)
{
    char name[HF_ID_SIZE] = "", key[HF_UNIQUE_MAX + 1] = "";
    const hf_job plain = {HF_JOB_INIT, .type = name, .id = "i"};
    hf_buf buf;
    (void)state;
    memset(name, 'x', HF_NAME_MAX);
    memset(key, '"', HF_UNIQUE_MAX); /* each becomes six bytes */
    const hf_job job = {HF_JOB_INIT,
                        .type = name,
                        .id = "i",
                        .priority = HF_PRIORITY_HIGH,
                        .expired = HF_EXPIRED_DEAD,
                        .start_within_ms = HF_DELAY_MAX_MS,
                        .unique = key,
                        .unique_until = HF_UNIQUE_UNTIL_START,
                        .on_conflict = HF_ON_CONFLICT_REPLACE,
                        .unique_for_ms = HF_DELAY_MAX_MS,
                        .debounce_ms = HF_DELAY_MAX_MS,
                        .max_wait_ms = HF_DELAY_MAX_MS,
                        .throttle_ms = HF_DELAY_MAX_MS,
                        .on_dead = name,
                        .awaited = true,
                        .replace_dead = true,
                        .headers = "{\"a\":\"b\"}"};
    hf_buf_init(&buf, 1 << 20);
    hf_record_write(&buf, &plain, 0);
    size_t without = buf.len;
    hf_buf_clear(&buf);
    hf_record_write(&buf, &job, 0);
    size_t more = buf.len - without + strlen(key) + 1; /* also as it is: hf_batch_add() */
    assert_true(more <= hf_check_job_bytes(&job) - hf_check_job_bytes(&plain));
    hf_buf_done(&buf);
}

static void a_full_buffer_is_told(void **state)
{
    (void)state;
    hf_buf buf;
    hf_buf_init(&buf, 64);
    hf_record_write(&buf,
                    &(hf_job){HF_JOB_INIT, .type = "t",
                              .payload = "0123456789012345678901234567890123",
                              .payload_len = 34},
                    1700000000000);
    assert_int_equal(hf_buf_err(&buf), HF_TOOBIG);
    hf_buf_done(&buf);
}

static void a_payload_is_any_bytes(void **state)
{
    static const char raw[] = "{\"v\":1,\"type\":\"t\",\"created\":5}\n\0\n\xff";
    (void)state;
    hf_record record;
    assert_int_equal(hf_record_read(&record, (hf_bytes){raw, sizeof raw - 1}), HF_OK);
    assert_int_equal(record.payload.len, 3);
    assert_memory_equal(record.payload.ptr, "\0\n\xff", 3);
    hf_record_done(&record);
}

/* Every header twice: as it is, and with a space that only the JSON parser accepts. */
static hf_err read_both(const char *header, hf_record *out)
{
    char spaced[2048];
    hf_record other;
    (void)snprintf(spaced, sizeof spaced, " %s", header);
    hf_err parsed = hf_record_read(&other, text(spaced));
    hf_err scanned = hf_record_read(out, text(header));
    assert_int_equal(parsed, scanned);
    if (scanned == HF_OK) {
        assert_string_equal(out->type, other.type);
        assert_true(out->created_ms == other.created_ms);
        assert_int_equal(out->attempts, other.attempts);
        assert_int_equal(out->max_attempts, other.max_attempts);
        assert_int_equal(out->timeout_ms, other.timeout_ms);
        assert_int_equal(out->priority, other.priority);
        assert_int_equal(out->keep_ms, other.keep_ms);
        assert_int_equal(out->error.len, other.error.len);
        assert_memory_equal(out->error.ptr, other.error.ptr, out->error.len);
        assert_int_equal(out->payload.len, other.payload.len);
    }
    hf_record_done(&other);
    return scanned;
}

static void fields_come_in_any_order_and_unknown_ones_are_ignored(void **state)
{
    (void)state;
    hf_record record;
    assert_int_equal(
        read_both("{\"error\":\"it broke\",\"attempts\":2,\"failed\":1700000000001,"
                  "\"created\":1700000000000,\"x\":\"y\",\"type\":\"a.b\","
                  "\"timeout\":500,\"max_attempts\":7,\"v\":1}\npay",
                  &record),
        HF_OK);
    assert_string_equal(record.type, "a.b");
    assert_true(record.created_ms == 1700000000000);
    assert_int_equal(record.attempts, 2);
    assert_int_equal(record.max_attempts, 7);
    assert_int_equal(record.timeout_ms, 500);
    assert_bytes(record.error, "it broke");
    assert_bytes(record.payload, "pay");
    hf_record_done(&record);
}

static void what_the_scanner_does_not_know_the_parser_reads(void **state)
{
    (void)state;
    hf_record record;
    assert_int_equal(
        read_both("{\"v\":1,\"type\":\"t\",\"created\":1,\"more\":{\"a\":[1,2.5,null]},"
                  "\"error\":\"a\\n\\\"b\\\" \\u00e9\"}\n",
                  &record),
        HF_OK);
    assert_bytes(record.error, "a\n\"b\" \xc3\xa9");
    hf_record_done(&record);
    assert_int_equal(
        read_both("{\"v\":1,\"type\":\"t\",\"error\":\"caf\xc3\xa9\"}\n", &record),
        HF_OK);
    assert_bytes(record.error, "caf\xc3\xa9");
    hf_record_done(&record);
}

static void an_error_may_hold_a_nul(void **state)
{
    (void)state;
    hf_record record;
    assert_int_equal(
        read_both("{\"v\":1,\"type\":\"t\",\"error\":\"a\\u0000b\"}\n", &record), HF_OK);
    assert_int_equal(record.error.len, 3);
    assert_memory_equal(record.error.ptr, "a\0b", 3);
    hf_record_done(&record);
}

static void the_last_of_two_equal_fields_counts(void **state)
{
    (void)state;
    hf_record record;
    assert_int_equal(read_both("{\"v\":1,\"type\":\"a\",\"type\":\"b\"}\n", &record),
                     HF_OK);
    assert_string_equal(record.type, "b");
    hf_record_done(&record);
}

/* The allocator's sizes are 96, 112, 128, 160: what a string takes beside its bytes
 * are 4. */
static void a_usual_record_takes_128_bytes_in_redis(void **state)
{
    (void)state;
    char payload[100];
    memset(payload, 'x', sizeof payload);
    hf_buf buf;
    hf_buf_init(&buf, 1 << 20);
    hf_record_write(&buf,
                    &(hf_job){HF_JOB_INIT, .type = "twelve.chars", .payload = payload,
                              .payload_len = sizeof payload},
                    0);
    assert_int_equal(buf.len, 124);
    hf_buf_done(&buf);
}

static void without_a_version_and_a_time_it_is_version_1(void **state)
{
    (void)state;
    hf_record record;
    assert_int_equal(read_both("{\"type\":\"t\"}\npay", &record), HF_OK);
    assert_string_equal(record.type, "t");
    assert_true(record.created_ms == 0);
    assert_bytes(record.payload, "pay");
    hf_record_done(&record);
    assert_int_equal(read_both("{\"v\":1,\"type\":\"t\"}\n", &record), HF_OK);
    hf_record_done(&record);
}

static void what_is_no_record_of_version_1_is_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "\n",
        "{}\n",
        "{\"v\":1,\"type\":\"t\",\"created\":1}", /* no end of the line */
        "{\"v\":2,\"type\":\"t\",\"created\":1}\n",
        "{\"v\":0,\"type\":\"t\"}\n",
        "{\"created\":1}\n",
        "{\"v\":\"1\",\"type\":\"t\"}\n",
        "{\"v\":1.0,\"type\":\"t\"}\n",
        "{\"v\":01,\"type\":\"t\"}\n",
        "{\"v\":1,\"created\":1}\n", /* no type */
        "{\"v\":1,\"type\":\"\"}\n",
        "{\"v\":1,\"type\":\"no name\"}\n",
        "{\"v\":1,\"type\":7}\n",
        "{\"v\":1,\"type\":\"t\",\"created\":-1}\n",
        "{\"v\":1,\"type\":\"t\",\"attempts\":-1}\n",
        "{\"v\":1,\"type\":\"t\",\"attempts\":4294967296}\n",
        "{\"v\":1,\"type\":\"t\",\"timeout\":99999999999999999999}\n",
        "{\"v\":1,\"type\":\"t\",\"max_attempts\":\"3\"}\n",
        "{\"v\":1,\"type\":\"t\",\"error\":3}\n",
        "{\"v\":1,\"type\":\"t\",\"error\":\"\xff\"}\n", /* no UTF-8 */
        "{\"v\":1,\"type\":\"t\"}}\n",
        "{\"v\":1,\"type\":\"t\",}\n",
        "{\"v\":1,\"type\":\"t\"\n",
        "{\"v\":1 \"type\":\"t\"}\n",
        "[1]\n",
        "\"v\"\n",
        "{\"v\n\":1,\"type\":\"t\"}\n",
    };
    (void)state;
    for (size_t i = 0; i < HF_COUNT(bad); i++) {
        hf_record record;
        if (read_both(bad[i], &record) != HF_PROTO)
            fail_msg("accepted: %s", bad[i]);
        hf_record_done(&record);
    }
}

/* No header that is cut short or has one byte changed makes the two readers disagree. */
static void scanner_and_parser_agree_on_damaged_headers(void **state)
{
    static const char good[] = "{\"v\":1,\"type\":\"a.b\",\"created\":1700000000000,"
                               "\"attempts\":2,\"error\":\"x y\"}\n";
    static const char marks[] = "\"{}:,0-. \\\n\t\x7f\xc3"
                                "1a";
    (void)state;
    for (size_t i = 0; i + 1 < sizeof good; i++) {
        for (size_t j = 0; j + 1 < sizeof marks; j++) {
            char damaged[sizeof good];
            memcpy(damaged, good, sizeof good);
            damaged[i] = marks[j];
            hf_record record;
            (void)!read_both(damaged, &record);
            hf_record_done(&record);
            damaged[i] = '\n';
            damaged[i + 1] = '\0';
            (void)!read_both(damaged, &record);
            hf_record_done(&record);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_record_is_one_line_and_the_payload),
        cmocka_unit_test(headers_stand_at_the_end_without_white_space),
        cmocka_unit_test(headers_are_read_as_json),
        cmocka_unit_test(the_longest_header_fits),
        cmocka_unit_test(the_longest_plain_record_is_counted),
        cmocka_unit_test(the_longest_record_with_options_is_counted),
        cmocka_unit_test(a_full_buffer_is_told),
        cmocka_unit_test(a_payload_is_any_bytes),
        cmocka_unit_test(fields_come_in_any_order_and_unknown_ones_are_ignored),
        cmocka_unit_test(what_the_scanner_does_not_know_the_parser_reads),
        cmocka_unit_test(an_error_may_hold_a_nul),
        cmocka_unit_test(the_last_of_two_equal_fields_counts),
        cmocka_unit_test(a_usual_record_takes_128_bytes_in_redis),
        cmocka_unit_test(without_a_version_and_a_time_it_is_version_1),
        cmocka_unit_test(what_is_no_record_of_version_1_is_refused),
        cmocka_unit_test(scanner_and_parser_agree_on_damaged_headers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
