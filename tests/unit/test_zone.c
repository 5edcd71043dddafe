/* test_zone.c - time zones: their files and the rules at their end. */
#include "cron/zone.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "base/text.h"
#include "tests/support/tempdir.h"

enum { FILE_MAX = 1024, HEADER = 44 };

typedef struct file {
    unsigned char data[FILE_MAX];
    size_t len;
} file;

static void put(file *f, uint64_t value, size_t bytes)
{
    for (size_t i = bytes; i-- > 0;)
        f->data[f->len++] = (unsigned char)(value >> (8 * i));
}

/* One part with the offsets 0 and 3600, and one change to the second at `at`. */
static void put_part(file *f, char version, size_t leaps, size_t bytes, int64_t at)
{
    const uint64_t counts[] = {0, 0, leaps, 1, 2, 4};
    memcpy(f->data + f->len, "TZif", 4);
    f->data[f->len + 4] = (unsigned char)version;
    f->len += 20;
    for (size_t i = 0; i < HF_COUNT(counts); i++)
        put(f, counts[i], 4);
    put(f, (uint64_t)at, bytes);
    put(f, 1, 1);
    put(f, 0, 6);
    put(f, 3600, 4);
    put(f, 0, 2);
    put(f, 0, 4);
    f->len += leaps * (bytes + 4);
}

static file file_of(char version, size_t leaps, const char *rule)
{
    file f = {.len = 0};
    put_part(&f, version, leaps, 4, 1000);
    if (version == '\0')
        return f;
    put_part(&f, version, leaps, 8, INT64_C(5000000000));
    f.len += (size_t)snprintf((char *)f.data + f.len, 100, "\n%s\n", rule);
    return f;
}

static hf_err read_it(const file *f, hf_zone **out, char detail[HF_DETAIL_SIZE])
{
    /* Of its own size, for the address sanitizer. */
    unsigned char *copy = malloc(f->len + 1);
    assert_non_null(copy);
    memcpy(copy, f->data, f->len);
    hf_err err = hf_zone_read(out, copy, f->len, detail);
    free(copy);
    return err;
}

static void all_versions_are_read(void **state)
{
    static const char versions[] = {'\0', '2', '3', '4', '5'};
    (void)state;
    for (size_t i = 0; i < sizeof versions; i++) {
        hf_zone *zone = NULL;
        file f = file_of(versions[i], 0, "<+01>-1");
        assert_int_equal(read_it(&f, &zone, NULL), HF_OK);
        int64_t at = versions[i] == '\0' ? 1000 : INT64_C(5000000000);
        hf_zone_span before = hf_zone_span_at(zone, at - 1);
        hf_zone_span after = hf_zone_span_at(zone, at);
        assert_int_equal(before.offset, 0);
        assert_int_equal(before.until, at);
        assert_int_equal(after.offset, 3600);
        assert_int_equal(after.from, at);
        assert_true(after.until == INT64_MAX);
        hf_zone_free(zone);
    }
}

static void every_part_of_a_file_is_refused(void **state)
{
    (void)state;
    file f = file_of('2', 0, "CET-1CEST,M3.5.0,M10.5.0/3");
    for (size_t len = 0; len < f.len; len++) {
        hf_zone *zone = NULL;
        file cut = f;
        cut.len = len;
        assert_int_equal(read_it(&cut, &zone, NULL), HF_INVALID);
        assert_null(zone);
    }
}

/* Nothing is read beyond the file, and no span is without end in both directions by
 * accident. */
static void a_damaged_file_does_no_harm(void **state)
{
    file f = file_of('2', 0, "CET-1CEST,M3.5.0,M10.5.0/3");
    (void)state;
    for (size_t place = 0; place < f.len; place++) {
        for (int value = 0; value < 256; value += 17) {
            hf_zone *zone = NULL;
            file bad = f;
            bad.data[place] = (unsigned char)value;
            if (read_it(&bad, &zone, NULL) != HF_OK)
                continue;
            for (int64_t t = 0; t < INT64_C(8000000000); t += 100000000) {
                hf_zone_span span = hf_zone_span_at(zone, t);
                assert_true(span.from <= t && t < span.until);
            }
            hf_zone_free(zone);
        }
    }
}

typedef struct why_case {
    file f;
    const char *why;
} why_case;

static void a_bad_file_is_refused_with_the_reason(void **state)
{
    (void)state;
    const why_case cases[] = {
        {file_of('2', 1, "<+01>-1"), "expected a time zone without leap seconds"},
        {file_of('2', 0, "CET-1CEST"), "damaged"},
        {file_of('2', 0, "CET-1CEST,M3.5.0,M13.5.0/3"), "damaged"},
        {file_of('2', 0, "CET-1CEST,M3.5.0,M10.5.0/168"), "damaged"},
        {file_of('2', 0, "CET-1CEST,M3.5.0,M10.5.0/3,"), "damaged"},
        {file_of('2', 0, "C-1"), "damaged"},
        {file_of('2', 0, "CET"), "damaged"},
        {{{'T', 'Z'}, 2}, "expected a time zone file (TZif)"},
    };
    for (size_t i = 0; i < HF_COUNT(cases); i++) {
        char detail[HF_DETAIL_SIZE] = "";
        hf_zone *zone = NULL;
        assert_int_equal(read_it(&cases[i].f, &zone, detail), HF_INVALID);
        assert_non_null(strstr(detail, cases[i].why));
    }
}

typedef struct rule_case {
    const char *rule, *at;
    int32_t offset;
    const char *until; /* NULL: for ever */
} rule_case;

static void a_rule_holds_after_the_last_change(void **state)
{
    static const rule_case cases[] = {
        {"CET-1CEST,M3.5.0,M10.5.0/3", "2200-01-01T00:00:00Z", 3600,
         "2200-03-30T01:00:00Z"},
        {"CET-1CEST,M3.5.0,M10.5.0/3", "2200-07-01T00:00:00Z", 7200,
         "2200-10-26T01:00:00Z"},
        {"IST-1GMT0,M10.5.0,M3.5.0/1", "2200-01-01T00:00:00Z", 0, "2200-03-30T01:00:00Z"},
        {"IST-1GMT0,M10.5.0,M3.5.0/1", "2200-07-01T00:00:00Z", 3600,
         "2200-10-26T01:00:00Z"},
        {"EET-2EEST,M3.4.4/50,M10.4.4/50", "2200-01-01T00:00:00Z", 7200,
         "2200-03-29T00:00:00Z"},
        {"<-02>2<-01>,M3.5.0/-1,M10.5.0/0", "2200-01-01T00:00:00Z", -7200,
         "2200-03-30T01:00:00Z"},
        {"<-03>3", "2200-01-01T00:00:00Z", -10800, NULL},
        {"EST5EDT,0/0,J365/25", "2200-01-01T06:00:00Z", -14400, "2201-01-01T05:00:00Z"},
        {"ABC3DEF,J60,J300", "2204-02-29T12:00:00Z", -10800, "2204-03-01T05:00:00Z"},
        {"ABC3DEF,59,300", "2204-01-29T12:00:00Z", -10800, "2204-02-29T05:00:00Z"},
        {"AEST-10AEDT,M10.1.0,M4.1.0/3", "2200-01-01T00:00:00Z", 39600,
         "2200-04-05T16:00:00Z"},
        {"ABC-0:30:15DEF-1:00:30,M3.1.1,M10.1.1", "2200-01-01T00:00:00Z", 1815,
         "2200-03-03T01:29:45Z"},
    };
    (void)state;
    for (size_t i = 0; i < HF_COUNT(cases); i++) {
        char detail[HF_DETAIL_SIZE] = "";
        int64_t at = 0, until = INT64_MAX;
        hf_zone *zone = NULL;
        file f = file_of('3', 0, cases[i].rule);
        if (read_it(&f, &zone, detail) != HF_OK)
            fail_msg("%s: %s", cases[i].rule, detail);
        assert_true(hf_parse_time_ms(cases[i].at, &at));
        if (cases[i].until != NULL) {
            assert_true(hf_parse_time_ms(cases[i].until, &until));
            until /= 1000;
        }
        hf_zone_span span = hf_zone_span_at(zone, at / 1000);
        if (span.offset != cases[i].offset || span.until != until)
            fail_msg("%s at %s: found %d until @%lld, expected until @%lld",
                     cases[i].rule, cases[i].at, span.offset, (long long)span.until,
                     (long long)until);
        hf_zone_free(zone);
    }
}

/* ---- files ---- */

static void write_file(const char *path, const file *f)
{
    FILE *out = fopen(path, "wb");
    assert_non_null(out);
    assert_int_equal(fwrite(f->data, 1, f->len, out), f->len);
    assert_int_equal(fclose(out), 0);
}

static void a_name_never_leads_out_of_the_folder(void **state)
{
    static const char *const bad[] = {
        "",  "/etc/passwd", "..",      "../x", "a/../../x", "a//b", "a/", "/a",
        ".", "a/./b",       ".hidden", "a b",  "a\nb",      "a\\b", "a:b"};
    char folder[HF_TEMPDIR_SIZE], path[HF_TEMPDIR_SIZE + 64];
    char longest[HF_ZONE_NAME_MAX + 2];
    (void)state;
    hf_tempdir_make(folder);
    file f = file_of('2', 0, "<+01>-1");
    snprintf(path, sizeof path, "%s/in", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(setenv("TZDIR", path, 1), 0);
    snprintf(path, sizeof path, "%s/x", folder);
    write_file(path, &f);
    snprintf(path, sizeof path, "%s/in/Home", folder);
    write_file(path, &f);
    snprintf(path, sizeof path, "%s/in/pipe", folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    snprintf(path, sizeof path, "%s/in/folder", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    hf_zone *zone = NULL;
    for (size_t i = 0; i < HF_COUNT(bad); i++)
        assert_int_equal(hf_zone_open(&zone, bad[i], NULL), HF_INVALID);
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    assert_int_equal(hf_zone_open(&zone, longest, NULL), HF_INVALID);
    assert_int_equal(hf_zone_open(&zone, "pipe", NULL), HF_INVALID);
    assert_int_equal(hf_zone_open(&zone, "folder", NULL), HF_INVALID);
    assert_int_equal(hf_zone_open(&zone, "Home", NULL), HF_OK);
    hf_zone_free(zone);
    assert_int_equal(unsetenv("TZDIR"), 0);
    hf_tempdir_remove(folder);
}

static void a_file_that_was_replaced_is_noticed(void **state)
{
    char folder[HF_TEMPDIR_SIZE], path[HF_TEMPDIR_SIZE + 64], fresh[HF_TEMPDIR_SIZE + 64];
    hf_zone *zone = NULL;
    (void)state;
    hf_tempdir_make(folder);
    assert_int_equal(setenv("TZDIR", folder, 1), 0);
    file f = file_of('2', 0, "<+01>-1");
    snprintf(path, sizeof path, "%s/Home", folder);
    snprintf(fresh, sizeof fresh, "%s/new", folder);
    write_file(path, &f);
    assert_int_equal(hf_zone_open(&zone, "Home", NULL), HF_OK);
    assert_true(hf_zone_is_current(zone, "Home"));
    write_file(fresh, &f);
    assert_int_equal(rename(fresh, path), 0);
    assert_false(hf_zone_is_current(zone, "Home"));
    assert_int_equal(unlink(path), 0);
    assert_true(
        hf_zone_is_current(zone, "Home")); /* what was read is the best there is */
    hf_zone_free(zone);
    assert_int_equal(unsetenv("TZDIR"), 0);
    hf_tempdir_remove(folder);
}

static void utc_needs_no_file(void **state)
{
    hf_zone *zone = NULL;
    (void)state;
    assert_int_equal(setenv("TZDIR", "/nonexistent", 1), 0);
    assert_int_equal(hf_zone_open(&zone, "UTC", NULL), HF_OK);
    assert_int_equal(hf_zone_span_at(zone, 1000).offset, 0);
    assert_true(hf_zone_is_current(zone, "UTC"));
    hf_zone_free(zone);
    assert_int_equal(hf_zone_open(&zone, "Europe/Berlin", NULL), HF_INVALID);
    assert_int_equal(unsetenv("TZDIR"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_versions_are_read),
        cmocka_unit_test(every_part_of_a_file_is_refused),
        cmocka_unit_test(a_damaged_file_does_no_harm),
        cmocka_unit_test(a_bad_file_is_refused_with_the_reason),
        cmocka_unit_test(a_rule_holds_after_the_last_change),
        cmocka_unit_test(a_name_never_leads_out_of_the_folder),
        cmocka_unit_test(a_file_that_was_replaced_is_noticed),
        cmocka_unit_test(utc_needs_no_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
