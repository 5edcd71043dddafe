/* test_schedule_pages.c - the list of the schedules of a queue, in pages of bounded size.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "tests/support/eventually.h"
#include "tests/support/queue_fixture.h"

enum { MANY = 1300, LARGE = 1 << 20 };

static hf_queue_fixture q;

static int up(void **state)
{
    (void)state;
    hf_queue_fixture_start(&q, NULL);
    q.admin = hf_queue_fixture_admin(&q);
    return 0;
}

static int down(void **state)
{
    (void)state;
    hf_queue_fixture_stop(&q);
    return 0;
}

static void put(const char *id, const void *payload, size_t len)
{
    char detail[HF_DETAIL_SIZE] = "";
    const hf_schedule schedule = {
        HF_SCHEDULE_INIT,    .id = id,           .queue = "q",      .type = "t",
        .every_ms = 3600000, .payload = payload, .payload_len = len};
    if (hf_admin_schedule_put(q.admin, &schedule, detail) != HF_OK)
        fail_msg("%s", detail);
}

static void put_numbered(unsigned i)
{
    char id[16];
    (void)snprintf(id, sizeof id, "s%04u", i);
    put(id, NULL, 0);
}

typedef struct seen {
    size_t n;
    hf_schedule_info last;
} seen;

static void note(const hf_schedule_info *schedule, void *arg)
{
    seen *s = arg;
    assert_true(s->n == 0 || strcmp(s->last.id, schedule->id) < 0);
    s->last = *schedule;
    s->n++;
}

static size_t list(const char *after, size_t limit, seen *s)
{
    size_t before = s->n;
    char detail[HF_DETAIL_SIZE] = "";
    if (hf_admin_schedules(q.admin, "q", after, limit, note, s, detail) != HF_OK)
        fail_msg("%s", detail);
    return s->n - before;
}

static void assert_pages(size_t total, size_t limit)
{
    seen s = {.n = 0};
    char after[HF_ID_SIZE] = "";
    size_t n = limit;
    for (; n == limit; memcpy(after, s.last.id, sizeof after))
        n = list(after[0] == '\0' ? NULL : after, limit, &s);
    assert_int_equal(s.n, total);
}

static void pages_have_all_schedules_by_their_ids(void **state)
{
    (void)state;
    for (unsigned i = 0; i < MANY; i++)
        put_numbered(i * 7 % MANY);
    assert_pages(MANY, 1000);
    assert_pages(MANY, 130);
    seen s = {.n = 0};
    assert_int_equal(list("s0041x", 1, &s), 1); /* it need not be there */
    assert_string_equal(s.last.id, "s0042");
    assert_string_equal(s.last.type, "t");
    assert_int_equal(s.last.every_ms, 3600000);
}

static void a_divided_queue_is_listed_as_one(void **state)
{
    (void)state;
    assert_int_equal(hf_admin_divide(q.admin, "q", 4, NULL), HF_OK);
    for (unsigned i = 0; i < 60; i++)
        put_numbered(i);
    assert_pages(60, 7);
    assert_pages(60, 60);
}

static void what_was_removed_leaves_no_gap_in_a_page(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 10; i++)
        put_numbered(i);
    for (unsigned i = 0; i < 5; i++) /* as of a file: its state stays */
        (void)hf_fixture_command(&q.redis, "HDEL hf:{q}:cron s000%u", i);
    seen s = {.n = 0};
    assert_int_equal(list(NULL, 3, &s), 3);
    assert_string_equal(s.last.id, "s0007");
}

static long long scripts(void)
{
    const char *info = hf_fixture_command(&q.redis, "INFO commandstats");
    const char *at = strstr(info, "cmdstat_evalsha:calls=");
    return at == NULL ? 0 : strtoll(at + strlen("cmdstat_evalsha:calls="), NULL, 10);
}

static void no_script_reads_more_than_about_a_mebibyte(void **state)
{
    char id[16], *payload = calloc(1, LARGE);
    (void)state;
    assert_non_null(payload);
    for (unsigned i = 0; i < 8; i++) {
        (void)snprintf(id, sizeof id, "s%u", i);
        put(id, payload, LARGE);
    }
    free(payload);
    seen s = {.n = 0};
    assert_int_equal(list(NULL, 1, &s), 1); /* Redis knows the scripts from now on */
    s.n = 0;
    long long before = scripts();
    assert_int_equal(list(NULL, 100, &s), 8);
    assert_int_equal(scripts() - before, 1 + 8); /* one finds the ids */
    assert_int_equal(s.last.payload_len, 0);
}

static void set(const char *hash, const char *id, const char *head, const char *text,
                const char *tail)
{
    size_t size = strlen(head) + strlen(text) + strlen(tail) + 1;
    char *value = malloc(size);
    assert_non_null(value);
    (void)snprintf(value, size, "%s%s%s", head, text, tail);
    (void)hf_fixture_command(&q.redis, "HSET hf:{q}:%s %s %s", hash, id, value);
    free(value);
}

/* Another program can write anything. */
static void a_schedule_of_any_size_is_listed(void **state)
{
    enum { LONG = 200000 };
    char *text = malloc(LONG + 1), id[200];
    (void)state;
    assert_non_null(text);
    memset(text, 'x', LONG);
    text[LONG] = '\0';
    memset(id, 'i', sizeof id);
    id[sizeof id - 1] = '\0';
    put("a", "p", 1);
    set("cron", "b", "{\"tz\":\"", text, "\"}");
    set("cron_state", "b", "{\"job\":\"", text, "\"}");
    text[150] = '\0';
    set("cron", "c", "{\"every\":500,\"job\":{\"type\":\"", text, "\"}}");
    set("cron_state", "c", "{\"gen\":\"", text, "\"}");
    set("cron", id, "{", "", "}");
    set("cron_state", id, "{", "", "}");
    put("z", "p", 1);
    free(text);
    assert_pages(4, 1); /* an id of 199 characters is none */
    seen s = {.n = 0};
    assert_int_equal(list("a", 1, &s), 1);
    assert_string_equal(s.last.id, "b");
    assert_string_equal(s.last.tz, "");
    assert_string_equal(s.last.job, "");
}

static void what_is_no_page_is_refused(void **state)
{
    char detail[HF_DETAIL_SIZE] = "";
    seen s = {.n = 0};
    (void)state;
    assert_int_equal(hf_admin_schedules(q.admin, "q", NULL, 0, note, &s, detail),
                     HF_INVALID);
    assert_string_equal(detail, "expected 1 to 1000 schedules, found 0");
    assert_int_equal(hf_admin_schedules(q.admin, "q", NULL, 1001, note, &s, detail),
                     HF_INVALID);
    assert_int_equal(hf_admin_schedules(q.admin, "q", "a b", 1, note, &s, detail),
                     HF_INVALID);
    assert_string_equal(detail, "expected an id, found 'a b'");
    assert_int_equal(hf_admin_schedules(q.admin, "q{", NULL, 1, note, &s, detail),
                     HF_INVALID);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(pages_have_all_schedules_by_their_ids),
        TEST(a_divided_queue_is_listed_as_one),
        TEST(what_was_removed_leaves_no_gap_in_a_page),
        TEST(no_script_reads_more_than_about_a_mebibyte),
        TEST(a_schedule_of_any_size_is_listed),
        TEST(what_is_no_page_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
