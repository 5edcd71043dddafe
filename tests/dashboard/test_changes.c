/* test_changes.c - the changes of the API with a real Redis: each asks for what it needs,
 * and does nothing else; what the API says of locks; and the changes that were made: the
 * last 100, the newest first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "dashboard/api.h"
#include "dashboard/changelog.h"
#include "dashboard/dead_tasks.h"
#include "tests/dashboard/dead_jobs.h"
#include "tests/support/eventually.h"

enum { LONG_MS = 30000 };

static hf_fixture redis;
static hf_server_opts server;
static hf_poller_opts opts;
static hf_reader reader;
static char answered[4096];

static int set_up(void **state)
{
    int result = hf_fixture_up(state);
    if (result != 0)
        return result;
    server = (hf_server_opts){HF_SERVER_OPTS_INIT, .url = hf_fixture_url(&redis)};
    opts = (hf_poller_opts){.server = &server};
    reader = (hf_reader){.opts = &opts};
    const hf_dead_tasks_opts of_tasks = {.server = &server};
    if (hf_dead_tasks_open(&opts.tasks, &of_tasks) != HF_OK)
        return -1;
    return hf_reader_open(&reader) == HF_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    hf_dead_tasks_close(opts.tasks);
    hf_lock_client_close(reader.locks, NULL, NULL);
    hf_admin_close(reader.admin);
    return hf_fixture_down(state);
}

static void on_told(hf_query *ask, bool dropped)
{
    assert_false(dropped);
    (void)ask;
}

static unsigned run_and_free(hf_query *ask)
{
    ask->task.run(&ask->task, &reader);
    const unsigned status = ask->status;
    (void)snprintf(answered, sizeof answered, "%s", ask->text);
    hf_ask_free(ask);
    return status;
}

/* The status of the answer, as it is given behind its checks. */
static unsigned change(hf_ask_run run, const char *arg, const char *body)
{
    hf_query *ask = hf_ask_new(run, on_told, NULL);
    assert_non_null(ask);
    ask->args[0] = arg;
    ask->role = HF_ROLE_CHANGE;
    ask->may_change = true;
    (void)snprintf(ask->who, sizeof ask->who, "ada");
    ask->body = json_loads(body, 0, NULL);
    assert_non_null(ask->body);
    return run_and_free(ask);
}

static void enqueue(const char *id, int64_t delay_ms)
{
    hf_producer *producer;
    char detail[HF_DETAIL_SIZE];
    const hf_producer_opts of = {HF_PRODUCER_OPTS_INIT, .server = &server};
    const hf_job job = {HF_JOB_INIT,      .queue = "q",     .type = "t",         .id = id,
                        .payload = "old", .payload_len = 3, .delay_ms = delay_ms};
    assert_int_equal(hf_producer_open(&producer, &of, detail), HF_OK);
    assert_int_equal(hf_enqueue_wait(producer, &job, 1, NULL, 0, detail), HF_OK);
    hf_producer_close(producer, NULL, NULL);
}

static void a_purge_needs_the_name_of_its_queue(void **state)
{
    (void)state;
    enqueue("one", 0);
    assert_int_equal(change(hf_changes_purge, "q", "{}"), 400);
    assert_int_equal(change(hf_changes_purge, "q", "{\"confirm\":\"Q\"}"), 400);
    assert_int_equal(change(hf_changes_purge, "no queue", "{\"confirm\":\"q\"}"), 400);
    assert_int_equal(hf_fixture_number(&redis, "ZCARD hf:{q}:schedule"), 1);
    assert_int_equal(change(hf_changes_purge, "q", "{\"confirm\":\"q\"}"), 200);
    assert_int_equal(hf_fixture_number(&redis, "ZCARD hf:{q}:schedule"), 0);
}

static void a_limit_is_a_number_and_a_rate(void **state)
{
    static const char *const bad[] = {"{}",
                                      "{\"max_running\":-1}",
                                      "{\"max_running\":\"3\"}",
                                      "{\"rate\":5}",
                                      "{\"rate\":\"x\"}",
                                      "{\"max_running\":4294967296}",
                                      "{\"max_running\":1.5}"};
    (void)state;
    for (size_t i = 0; i < HF_COUNT(bad); i++)
        if (change(hf_changes_limit, "q", bad[i]) != 400)
            fail_msg("%s: %s", bad[i], answered);
    assert_int_equal(
        change(hf_changes_limit, "q", "{\"max_running\":3,\"rate\":\"9/1s\"}"), 200);
    assert_int_equal(
        change(hf_changes_limit, "q", "{\"max_running\":null,\"rate\":\"0\"}"), 200);
}

static void a_waiting_job_is_edited(void **state)
{
    static const char *const bad[] = {"{}",
                                      "{\"payload\":5}",
                                      "{\"delay_ms\":-1}",
                                      "{\"delay_ms\":1,\"at_ms\":1}",
                                      "{\"at_ms\":0}",
                                      "{\"priority\":\"urgent\"}",
                                      "{\"priority\":\"high\",\"queue\":\"no name\"}"};
    hf_job_info info = {HF_JOB_INFO_INIT};
    void *payload = NULL;
    (void)state;
    enqueue("one", 3600000);
    for (size_t i = 0; i < HF_COUNT(bad); i++)
        if (change(hf_changes_job_edit, "one", bad[i]) != 400)
            fail_msg("%s: %s", bad[i], answered);
    assert_int_equal(change(hf_changes_job_edit, "two", "{\"delay_ms\":0}"), 404);
    assert_int_equal(change(hf_changes_job_edit, "one",
                            "{\"queue\":\"q\",\"payload\":\"new one\",\"delay_ms\":0,"
                            "\"priority\":\"high\"}"),
                     200);
    assert_int_equal(hf_admin_job(reader.admin, "q", "one", &info, &payload, NULL),
                     HF_OK);
    assert_int_equal(info.state, HF_STATE_READY);
    assert_int_equal(info.priority, HF_PRIORITY_HIGH);
    assert_int_equal(info.payload_len, 7);
    assert_memory_equal(payload, "new one", 7);
    free(payload);
    dead_jobs_make(&redis, 1, 2);
    assert_int_equal(change(hf_changes_job_edit, "id-1", "{\"delay_ms\":0}"), 409);
}

/* Else it would be any queue, and every holder. */
static void a_name_of_another_kind_is_not_left_out(void **state)
{
    (void)state;
    enqueue("one", 0);
    assert_int_equal(change(hf_changes_job_delete, "one", "{\"queue\":5}"), 400);
    assert_int_equal(change(hf_changes_job_cancel, "one", "{\"queue\":[]}"), 400);
    assert_int_equal(hf_fixture_number(&redis, "ZCARD hf:{q}:schedule"), 1);
    assert_int_equal(change(hf_changes_lock_revoke, NULL, "{\"name\":\"a\",\"owner\":5}"),
                     400);
    assert_int_equal(change(hf_changes_job_delete, "one", "{\"queue\":null}"), 200);
}

static const char *const whole = "{\"queue\":\"q\",\"type\":\"t\",\"key\":\"no host #\","
                                 "\"since_ms\":null,\"rate\":1000,\"expect\":%u,"
                                 "\"confirm\":%u}";

static unsigned change_group(hf_ask_run run, unsigned expect, unsigned confirm)
{
    char body[256];
    (void)snprintf(body, sizeof body, whole, expect, confirm);
    return change(run, NULL, body);
}

static void a_group_is_changed_by_those_who_know_its_size(void **state)
{
    (void)state;
    dead_jobs_make(&redis, 200, 2); /* 100 of them in the group */
    assert_int_equal(change_group(hf_api_tasks_retry, 100, 99), 400);
    assert_int_equal(change_group(hf_api_tasks_retry, 90, 90), 409);
    assert_non_null(strstr(answered, "\"changed\""));
    assert_int_equal(dead_jobs_left(&redis), 200);
    assert_int_equal(change_group(hf_api_tasks_retry, 91, 91), 200); /* 1.1 x 91 */
    EVENTUALLY(LONG_MS, dead_jobs_left(&redis) == 100);
    assert_int_equal(change_group(hf_api_tasks_purge, 1, 1), 404); /* none is left */
    assert_int_equal(hf_fixture_number(&redis, "ZCARD hf:{q}:schedule"), 100);
}

static void a_group_needs_all_that_names_it(void **state)
{
    static const char *const bad[] = {
        "{\"expect\":1,\"confirm\":1}",
        "{\"queue\":\"no name\",\"expect\":1,\"confirm\":1}",
        "{\"queue\":\"q\",\"confirm\":1}",
        "{\"queue\":\"q\",\"expect\":1}",
        "{\"queue\":\"q\",\"expect\":0,\"confirm\":0}",
        "{\"queue\":\"q\",\"expect\":1,\"confirm\":\"1\"}",
        "{\"queue\":\"q\",\"expect\":1,\"confirm\":1,\"rate\":0}",
        "{\"queue\":\"q\",\"expect\":1,\"confirm\":1,\"rate\":10001}",
        "{\"queue\":\"q\",\"expect\":1,\"confirm\":1,\"key\":7}",
        "{\"queue\":\"q\",\"expect\":1,\"confirm\":1,\"type\":\"no type\"}",
        "{\"queue\":\"q\",\"expect\":1,\"confirm\":1,\"since_ms\":-1}"};
    (void)state;
    dead_jobs_make(&redis, 1, 2);
    for (size_t i = 0; i < HF_COUNT(bad); i++)
        if (change(hf_api_tasks_purge, NULL, bad[i]) != 400)
            fail_msg("%s: %s", bad[i], answered);
    assert_int_equal(dead_jobs_left(&redis), 1);
}

static void a_task_is_read_and_stopped(void **state)
{
    char id[HF_NEW_ID_SIZE];
    (void)state;
    dead_jobs_make(&redis, 100, 101);
    assert_int_equal(change(hf_api_tasks_retry, NULL,
                            "{\"queue\":\"q\",\"rate\":1,\"expect\":100,"
                            "\"confirm\":100}"),
                     200);
    const char *at = strstr(answered, "\"task\":\"");
    assert_non_null(at);
    (void)snprintf(id, sizeof id, "%.*s", HF_NEW_ID_LEN, at + 8);
    assert_int_equal(change(hf_api_tasks_one, id, "{}"), 200);
    assert_non_null(strstr(answered, "\"total\":100"));
    assert_int_equal(change(hf_api_tasks_stop, "nothing", "{}"), 404);
    assert_int_equal(change(hf_api_tasks_stop, id, "{}"), 200);
    EVENTUALLY(LONG_MS, change(hf_api_tasks_one, id, "{}") == 200 &&
                            strstr(answered, "\"stopped\"") != NULL);
    for (size_t i = 0; i < HF_TASKS_AT_A_TIME; i++)
        assert_int_equal(change(hf_api_tasks_retry, NULL,
                                "{\"queue\":\"q\",\"rate\":1,\"expect\":100,"
                                "\"confirm\":100}"),
                         200);
    assert_int_equal(change(hf_api_tasks_retry, NULL,
                            "{\"queue\":\"q\",\"rate\":1,\"expect\":100,"
                            "\"confirm\":100}"),
                     429);
}

/* Another hold of the same owner, made since the look, stays. */
static void only_the_hold_that_was_seen_is_taken_away(void **state)
{
    char body[256];
    hf_lock *lock = NULL;
    static const char *const name = "a/b";
    const hf_lock_opts of = {HF_LOCK_OPTS_INIT, .names = &name, .n_names = 1,
                             .owner = "me", .lease_ms = LONG_MS};
    (void)state;
    assert_int_equal(hf_lock_acquire_wait(reader.locks, &of, &lock, NULL), HF_OK);
    const uint64_t seen = hf_lock_fence(lock);
    assert_int_equal(hf_lock_release_wait(lock, NULL), HF_RELEASE_DONE);
    assert_int_equal(hf_lock_acquire_wait(reader.locks, &of, &lock, NULL), HF_OK);
    (void)snprintf(body, sizeof body,
                   "{\"name\":\"a/b\",\"confirm\":\"a/b\",\"fence\":%llu}",
                   (unsigned long long)seen);
    assert_int_equal(change(hf_changes_lock_release, NULL, body), 409);
    assert_true(hf_lock_held(lock));
    (void)snprintf(body, sizeof body,
                   "{\"name\":\"a/b\",\"confirm\":\"a/b\",\"fence\":%llu}",
                   (unsigned long long)hf_lock_fence(lock));
    assert_int_equal(change(hf_changes_lock_release, NULL, body), 200);
    (void)hf_lock_release_wait(lock, NULL);
    assert_int_equal(
        change(hf_changes_lock_release, NULL, "{\"name\":\"a/b\",\"confirm\":\"a/b\"}"),
        400);
    assert_int_equal(
        change(hf_changes_lock_release, NULL, "{\"name\":\"a/b\",\"fence\":1}"), 400);
}

/* ---- what is said of locks ---- */

static void assert_locks(const char *part)
{
    hf_query *ask = hf_ask_new(hf_api_other_locks, on_told, NULL);
    assert_non_null(ask);
    assert_int_equal(run_and_free(ask), 200);
    if (strstr(answered, part) == NULL)
        fail_msg("%s\nis not in\n%s", part, answered);
}

/* An answer has 50 entries at most. */
static void all_holders_and_waiters_are_counted(void **state)
{
    (void)state;
    (void)hf_fixture_command(
        &redis, "EVAL %s 0",
        "local p, now = 'hf:lock:{n}:', redis.call('TIME')[1] * 1000 "
        "redis.call('HSET', p .. 'e:n', '#', '0 60 0 0 60000 1 0') "
        "for i = 1, 62 do local o, waits = 'o' .. i, i > 60 "
        "redis.call('ZADD', p .. 'x:n', now, o) "
        "if waits then redis.call('ZADD', p .. 'q:n', now * 1000 + i, o) end "
        "redis.call('HSET', p .. 'e:n', o, (waits and 'x 0 1 0' or 's 1 1 9') .. "
        "' web1-1-x n h=s 60000') end");
    assert_locks("\"name\":\"n\",\"mode\":\"shared\",\"holders\":60,\"waiting\":2,");
}

static void permits_are_told_with_their_limit(void **state)
{
    hf_lock *some = NULL, *all_of_it = NULL;
    static const char *const gpu = "gpu", *const shop = "shop";
    const hf_lock_opts two = {HF_LOCK_OPTS_INIT,       .names = &gpu, .n_names = 1,
                              .mode = HF_LOCK_PERMITS, .permits = 2,  .limit = 5};
    const hf_lock_opts all = {HF_LOCK_OPTS_INIT, .names = &shop, .n_names = 1};
    (void)state;
    assert_int_equal(hf_lock_acquire_wait(reader.locks, &two, &some, NULL), HF_OK);
    assert_locks("\"taken\":2,\"limit\":5,\"entries\":");
    assert_int_equal(hf_lock_release_wait(some, NULL), HF_RELEASE_DONE);
    assert_int_equal(hf_lock_acquire_wait(reader.locks, &all, &all_of_it, NULL), HF_OK);
    assert_locks("\"taken\":null,\"limit\":null,\"entries\":");
    assert_int_equal(hf_lock_release_wait(all_of_it, NULL), HF_RELEASE_DONE);
}

/* ---- the changes that were made ---- */

static const char *text_of(const json_t *list, size_t i, const char *name)
{
    return json_string_value(json_object_get(json_array_get(list, i), name));
}

static void the_last_hundred_are_kept(void **state)
{
    (void)state;
    hf_changelog *log = hf_changelog_open();
    assert_non_null(log);
    for (unsigned i = 0; i < HF_CHANGELOG_KEPT + 7; i++) {
        hf_changelog_entry entry = {.by = "ada",
                                    .role = "change",
                                    .what = "pause",
                                    .result = "done",
                                    .status = 200};
        (void)snprintf(entry.of, sizeof entry.of, "q%u", i);
        hf_changelog_add(log, &entry);
    }
    json_t *list = hf_changelog_objects(log, 60000);
    assert_int_equal(json_array_size(list), HF_CHANGELOG_KEPT);
    assert_string_equal(text_of(list, 0, "of"), "q106");
    assert_string_equal(text_of(list, HF_CHANGELOG_KEPT - 1, "of"), "q7");
    assert_string_equal(text_of(list, 0, "by"), "ada");
    assert_string_equal(text_of(list, 0, "result"), "done");
    const int64_t at_ms =
        json_integer_value(json_object_get(json_array_get(list, 0), "at_ms"));
    assert_true(at_ms > hf_wall_ms() && at_ms <= hf_wall_ms() + 60000);
    json_decref(list);
    hf_changelog_close(log);
}

static void a_text_cannot_forge_a_line(void **state)
{
    (void)state;
    hf_changelog *log = hf_changelog_open();
    const hf_changelog_entry entry = {.by = "a\nb",
                                      .role = "change",
                                      .what = "purge",
                                      .of = "q\x1b[2J",
                                      .result = "no\r\nline",
                                      .status = 409};
    hf_changelog_add(log, &entry);
    json_t *list = hf_changelog_objects(log, 0);
    assert_string_equal(text_of(list, 0, "by"), "a b");
    assert_string_equal(text_of(list, 0, "of"), "q [2J");
    assert_string_equal(text_of(list, 0, "result"), "no  line");
    json_decref(list);
    hf_changelog_close(log);
}

#define TEST(name)                                                                       \
    cmocka_unit_test_prestate_setup_teardown(name, set_up, tear_down, &redis)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_purge_needs_the_name_of_its_queue),
        TEST(a_limit_is_a_number_and_a_rate),
        TEST(a_waiting_job_is_edited),
        TEST(a_name_of_another_kind_is_not_left_out),
        TEST(a_group_is_changed_by_those_who_know_its_size),
        TEST(a_group_needs_all_that_names_it),
        TEST(a_task_is_read_and_stopped),
        TEST(only_the_hold_that_was_seen_is_taken_away),
        TEST(all_holders_and_waiters_are_counted),
        TEST(permits_are_told_with_their_limit),
        cmocka_unit_test(the_last_hundred_are_kept),
        cmocka_unit_test(a_text_cannot_forge_a_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
