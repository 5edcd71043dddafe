/* test_queue_expiry.c - jobs that did not start in time: they are gone at that moment for
 * everybody, are counted once, and leave nothing behind. What has started never expires.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "queue_scripts.h"
#include "tests/support/eventually.h"
#include "tests/support/queue_fixture.h"

enum { LATE_MS = 13000, WAIT_MS = 15000 };

static hf_queue_fixture fixture;
static char detail[HF_DETAIL_SIZE];

#define DROP "{\"type\":\"t\",\"start_within\":12000}\n"
#define DIE "{\"type\":\"t\",\"start_within\":12000,\"expired\":\"dead\"}\npayload"
#define HIGH "{\"type\":\"t\",\"priority\":\"high\",\"start_within\":12000}\n"
#define LONG "{\"type\":\"t\",\"start_within\":600000}\n"
#define PLAIN "{\"type\":\"t\"}\n"

static hf_err put(const char *id, const char *record, int64_t due_ms)
{
    const hf_enqueue_args args = {.producer = "",
                                  .options = strstr(record, "start_within") != NULL};
    const hf_enqueue_item item = {id, due_ms, {record, strlen(record)}};
    hf_err err = hf_queue_fixture_enqueue_items(&fixture, &args, &item, 1);
    return err == HF_OK && fixture.n_codes == 1 ? fixture.codes[0] : err;
}

static void must_put(const char *id, const char *record, int64_t due_ms)
{
    assert_int_equal(put(id, record, due_ms), HF_OK);
}

static size_t claim(uint32_t max)
{
    return hf_queue_fixture_claim(&fixture, "w", max, 0);
}

static long long number(const char *command)
{
    return hf_fixture_number(&fixture.redis, command);
}

static long long expires(const char *id)
{
    return hf_fixture_number(&fixture.redis, "ZSCORE hf:{q}:expires %s", id);
}

static void pass(void)
{
    hf_fixture_clock_jump(&fixture.redis, LATE_MS);
}

static hf_queue_stats stats(void)
{
    hf_queue_stats s = {HF_QUEUE_STATS_INIT};
    assert_int_equal(hf_admin_stats(fixture.admin, "q", &s, detail), HF_OK);
    return s;
}

static hf_err wait_for(const char *id, int64_t accepted_ms)
{
    return hf_admin_wait(fixture.admin, "q", id, accepted_ms, WAIT_MS, detail);
}

static void verdict(hf_verdict_op op, const char *id, const char *error, bool started,
                    int64_t due_ms)
{
    const hf_verdict_args args = {.worker = "w", .dead_max = 10, .dead_age_ms = 1000000};
    const hf_verdict_item item = {.id = id,
                                  .error = {error, strlen(error)},
                                  .reason = "handler",
                                  .started = started,
                                  .due_ms = due_ms};
    assert_int_equal(hf_queue_fixture_verdict(&fixture, op, &args, &item), HF_OK);
}

/* Nothing is left of any job. */
static void assert_empty(void)
{
    assert_int_equal(number("EXISTS hf:{q}:schedule hf:{q}:schedule:h hf:{q}:expires "
                            "hf:{q}:jobs hf:{q}:running"),
                     0);
}

/* ---- claims ---- */

static void what_is_late_is_not_claimed(void **state)
{
    (void)state;
    must_put("late", DROP, 0);
    must_put("urgent", HIGH, 0);
    must_put("live", PLAIN, 0);
    int64_t accepted = fixture.now_ms;
    pass();
    assert_int_equal(claim(3), 1);
    assert_string_equal(fixture.jobs[0].id, "live");
    assert_int_equal(hf_queue_fixture_meta(&fixture, "expired"), 2);
    assert_int_equal(wait_for("late", accepted - 100), HF_EXPIRED);
    assert_int_equal(hf_queue_fixture_complete(&fixture, "w", "live", NULL), HF_OK);
    assert_empty();
    assert_int_equal(stats().expired, 2);
}

static void what_starts_in_time_does_not_expire(void **state)
{
    (void)state;
    must_put("one", LONG, 0);
    assert_true(expires("one") >= fixture.now_ms);
    assert_int_equal(claim(1), 1);
    assert_int_equal(number("EXISTS hf:{q}:expires"), 0);
    assert_int_equal(hf_queue_fixture_check(&fixture, "w", false), HF_OK);
    assert_int_equal(hf_queue_fixture_complete(&fixture, "w", "one", NULL), HF_OK);
    assert_int_equal(stats().expired, 0);
    assert_empty();
}

static void the_time_begins_with_the_first_due_time(void **state)
{
    (void)state;
    must_put("later", LONG, -60000);
    assert_int_equal(expires("later") - fixture.now_ms, 660000);
    must_put("long_ago", LONG, 5);
    assert_int_equal(expires("long_ago") - fixture.now_ms, 600000);
}

static void a_claim_takes_a_token_for_none(void **state)
{
    (void)state;
    must_put("late", DROP, 0);
    must_put("live", PLAIN, 0);
    assert_int_equal(
        hf_admin_limit(fixture.admin, "q", HF_LIMIT_KEEP, 1, 3600000, detail), HF_OK);
    pass();
    assert_int_equal(claim(2), 1);
    assert_string_equal(fixture.jobs[0].id, "live");
}

static void a_paused_queue_lets_them_expire(void **state)
{
    (void)state;
    must_put("late", DROP, 0);
    assert_int_equal(hf_admin_pause(fixture.admin, "q", true, detail), HF_OK);
    long long at = expires("late");
    assert_int_equal(hf_fixture_number(&fixture.redis, "ZSCORE hf:{q}:wake baton"), at);
    pass();
    assert_int_equal(claim(1), 0);
    assert_int_equal(fixture.next_ms, 0);
    assert_int_equal(hf_queue_fixture_meta(&fixture, "expired"), 1);
    assert_empty();
}

static void a_queue_at_its_limit_lets_them_expire(void **state)
{
    (void)state;
    must_put("runs", PLAIN, 0);
    assert_int_equal(claim(1), 1);
    assert_int_equal(
        hf_admin_limit(fixture.admin, "q", 1, HF_LIMIT_KEEP, HF_LIMIT_KEEP, detail),
        HF_OK);
    must_put("late", DROP, 0);
    assert_int_equal(hf_fixture_number(&fixture.redis, "ZSCORE hf:{q}:wake baton"),
                     expires("late"));
    pass();
    assert_int_equal(claim(1), 0);
    assert_int_equal(hf_queue_fixture_meta(&fixture, "expired"), 1);
}

/* This many with this record are over. */
static void put_late(size_t n, const char *record)
{
    static char ids[500][16];
    static hf_enqueue_item items[HF_COUNT(ids)];
    const hf_enqueue_args args = {.producer = "", .options = true};
    assert_true(n <= HF_COUNT(ids));
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(ids[i], sizeof ids[i], "j%04zu", i);
        items[i] = (hf_enqueue_item){ids[i], 0, {record, strlen(record)}};
    }
    assert_int_equal(hf_queue_fixture_enqueue_items(&fixture, &args, items, n), HF_OK);
    pass();
}

static void many_expire_in_slices_and_the_next_comes_at_once(void **state)
{
    enum { N = 500, SLICE = 200 };
    (void)state;
    must_put("live", PLAIN, 0);
    put_late(N, DROP);
    for (int i = 1; i <= 2; i++) {
        assert_int_equal(claim(10), 0); /* a claim at its bound takes no job */
        assert_int_equal(hf_queue_fixture_meta(&fixture, "expired"), i * SLICE);
        assert_int_equal(fixture.next_ms, fixture.now_ms);
        assert_int_equal(stats().expired, N);
        assert_int_equal(stats().ready, 1);
    }
    assert_int_equal(claim(10), 1);
    assert_int_equal(hf_queue_fixture_meta(&fixture, "expired"), N);
}

/* A script that reads or writes more of each ends with fewer. */
static void fewer_expire_at_once_that_are_large_or_die(void **state)
{
    char large[8192];
    (void)state;
    memset(large, 'x', sizeof large);
    memcpy(large, DROP, strlen(DROP));
    large[sizeof large - 100] = '\0';
    put_late(60, large);
    assert_int_equal(claim(10), 0);
    assert_int_equal(hf_queue_fixture_meta(&fixture, "expired"), 25);
    assert_int_equal(claim(10) + claim(10), 0);
    assert_int_equal(hf_queue_fixture_meta(&fixture, "expired"), 60);
    put_late(90, DIE);
    assert_int_equal(claim(10), 0);
    assert_int_equal(number("ZCARD hf:{q}:dead"), 50);
    assert_int_equal(claim(10) + claim(10), 0);
    assert_int_equal(number("ZCARD hf:{q}:dead"), 90);
}

/* ---- among the dead ---- */

static void it_can_become_a_dead_letter(void **state)
{
    hf_job_info info = {HF_JOB_INFO_INIT};
    (void)state;
    must_put("late", DIE, 0);
    pass();
    for (int i = 0; i < 2; i++) { /* before a worker came, and after it */
        assert_int_equal(hf_admin_job(fixture.admin, "q", "late", &info, NULL, detail),
                         HF_OK);
        assert_int_equal(info.state, HF_STATE_DEAD);
        assert_string_equal(info.error, "it did not start within 12s");
        assert_int_equal(wait_for("late", 0), HF_DEAD);
        assert_int_equal(put("late", PLAIN, 0), HF_DEAD);
        assert_int_equal(stats().expired, 1);
        assert_int_equal(claim(1), 0);
    }
    assert_int_equal(hf_queue_fixture_meta(&fixture, "expired"), 1);
    assert_int_equal(number("ZCARD hf:{q}:dead"), 1);
    /* It begins anew, and so does its time. */
    EVENTUALLY(WAIT_MS, hf_admin_retry(fixture.admin, "q", "late", detail) == HF_OK &&
                            claim(1) == 1);
    assert_string_equal(fixture.jobs[0].payload, "payload");
    assert_int_equal(hf_queue_fixture_complete(&fixture, "w", "late", NULL), HF_OK);
    assert_empty();
}

/* ---- what has started, and what has not ---- */

static void a_retry_never_expires(void **state)
{
    (void)state;
    must_put("one", LONG, 0);
    assert_int_equal(claim(1), 1);
    verdict(HF_OP_RETRY, "one", "it broke", true, 0);
    assert_int_equal(expires("one"), -1);
    assert_int_equal(claim(1), 1);
    verdict(HF_OP_RELEASE, "one", "", false, 1);
    assert_int_equal(expires("one"), -1);
    assert_int_equal(claim(1), 1);
}

static void what_started_and_was_released_never_expires(void **state)
{
    (void)state;
    must_put("one", LONG, 0);
    assert_int_equal(claim(1), 1);
    verdict(HF_OP_RELEASE, "one", "", true, 1);
    assert_int_equal(claim(1), 1);
    verdict(HF_OP_RELEASE, "one", "", false, 1); /* not this time, but the first time */
    assert_int_equal(expires("one"), -1);
    assert_int_equal(claim(1), 1);
}

static void what_did_not_start_expires_when_it_would_have(void **state)
{
    (void)state;
    must_put("one", LONG, 0);
    long long at = expires("one");
    assert_int_equal(claim(1), 1);
    assert_int_equal(hf_queue_fixture_check(&fixture, "w", false), HF_OK);
    verdict(HF_OP_RELEASE, "one", "", false, 1);
    assert_int_equal(expires("one"), at);
    assert_int_equal(claim(1), 1);
    verdict(HF_OP_RELEASE, "one", "no handler", false, 0);
    assert_int_equal(expires("one"), at);
    assert_int_equal(claim(1), 1);
    assert_int_equal(hf_queue_fixture_unclaim(&fixture, "w", fixture.number), HF_OK);
    assert_int_equal(expires("one"), at);
}

static void what_was_taken_over_may_have_started(void **state)
{
    (void)state;
    must_put("one", LONG, 0);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "dead", 1, 40), 1);
    EVENTUALLY(WAIT_MS, claim(1) == 1);
    verdict(HF_OP_RELEASE, "one", "", false, 1);
    assert_int_equal(expires("one"), -1);
}

/* ---- everybody sees it at once ---- */

static void before_a_worker_came_it_is_gone_for_everybody(void **state)
{
    hf_job_info info = {HF_JOB_INFO_INIT};
    hf_job_why why = {HF_JOB_WHY_INIT, .job = &info};
    (void)state;
    must_put("late", DROP, 0);
    int64_t accepted = fixture.now_ms;
    must_put("long", LONG, -1000000);
    assert_int_equal(hf_admin_job(fixture.admin, "q", "long", &info, NULL, detail),
                     HF_OK);
    assert_int_equal(info.start_by_ms, expires("long"));
    pass();
    assert_int_equal(hf_admin_job(fixture.admin, "q", "late", &info, NULL, detail),
                     HF_GONE);
    assert_int_equal(hf_admin_why(fixture.admin, "q", "late", &why, detail), HF_GONE);
    assert_int_equal(wait_for("late", accepted), HF_EXPIRED);
    assert_int_equal(stats().ready, 0);
    assert_int_equal(stats().expired, 1);
    assert_int_equal(hf_queue_fixture_meta(&fixture, "expired"), -1); /* nobody came */
}

static void no_part(const hf_log_part *part, void *arg)
{
    (void)part;
    (void)arg;
    fail();
}

/* `job logs -f` ends when the job has ended. */
static void before_a_worker_came_its_logs_have_ended(void **state)
{
    hf_log_place place = {HF_LOG_PLACE_INIT};
    (void)state;
    must_put("late", DROP, 0);
    must_put("dead", DIE, 0);
    must_put("long", LONG, 0);
    pass();
    /* The last lines of an earlier job of this id, as leaving.lua leaves them for a
     * moment. */
    hf_fixture_command(&fixture.redis, "HSET hf:{q}:log:late 7 %s", "1 4 old\n");
    hf_fixture_command(&fixture.redis, "PEXPIRE hf:{q}:log:late 5000");
    assert_int_equal(
        hf_admin_logs(fixture.admin, "q", "late", &place, no_part, NULL, detail),
        HF_GONE);
    assert_int_equal(
        hf_admin_logs(fixture.admin, "q", "dead", &place, no_part, NULL, detail), HF_OK);
    assert_true(place.ended);
    assert_int_equal(
        hf_admin_logs(fixture.admin, "q", "long", &place, no_part, NULL, detail), HF_OK);
    assert_false(place.ended);
}

static void listed(const hf_job_info *info, void *arg)
{
    (void)info;
    ++*(size_t *)arg;
}

static void it_is_not_listed(void **state)
{
    char next[HF_CURSOR_SIZE];
    size_t n = 0;
    (void)state;
    must_put("late", DROP, 0);
    must_put("live", PLAIN, 0);
    pass();
    assert_int_equal(hf_admin_list(fixture.admin, "q", HF_STATE_READY, NULL, 10, listed,
                                   &n, next, detail),
                     HF_OK);
    assert_int_equal(n, 1);
}

static void its_id_is_free(void **state)
{
    (void)state;
    must_put("one", HIGH, 0);
    pass();
    must_put("one", PLAIN, 0);
    int64_t accepted = fixture.now_ms;
    assert_int_equal(hf_queue_fixture_meta(&fixture, "expired"), 1);
    pass();
    assert_int_equal(claim(1), 1);
    assert_int_equal(hf_queue_fixture_complete(&fixture, "w", "one", NULL), HF_OK);
    assert_int_equal(wait_for("one", accepted),
                     HF_GONE); /* the first one's end is no word */
    assert_empty();
    must_put("two", HIGH, 0);
    pass();
    must_put("two", LONG, 0);
    assert_int_equal(put("two", PLAIN, 0), HF_EXISTS);
    assert_int_equal(claim(1), 1);
}

static void it_is_neither_cancelled_nor_deleted_nor_retried(void **state)
{
    (void)state;
    must_put("a", DROP, 0);
    must_put("b", DROP, 0);
    must_put("c", DROP, 0);
    must_put("d", DIE, 0);
    pass();
    assert_int_equal(hf_admin_cancel(fixture.admin, "q", "a", NULL, detail), HF_GONE);
    assert_int_equal(hf_admin_delete(fixture.admin, "q", "b", NULL, detail), HF_GONE);
    assert_int_equal(hf_admin_retry(fixture.admin, "q", "c", detail), HF_GONE);
    assert_int_equal(hf_admin_cancel(fixture.admin, "q", "d", NULL, detail), HF_DEAD);
    assert_int_equal(hf_queue_fixture_meta(&fixture, "expired"), 4);
    assert_int_equal(hf_queue_fixture_meta(&fixture, "cancelled"), -1);
    assert_int_equal(hf_queue_fixture_meta(&fixture, "deleted"), -1);
}

static void what_is_hastened_has_its_whole_time(void **state)
{
    (void)state;
    must_put("one", LONG, -60000);
    assert_int_equal(hf_admin_retry(fixture.admin, "q", "one", detail), HF_OK);
    long long left = expires("one") - hf_queue_fixture_now(&fixture);
    assert_in_range(left, 590000, 600000);
    assert_int_equal(claim(1), 1);
    verdict(HF_OP_RELEASE, "one", "", false, 1);
    assert_true(expires("one") > 0);
}

/* ---- while it is parked ---- */

#define HOLDER "{\"type\":\"t\",\"unique\":\"k\",\"start_within\":600000}\n"
#define NEXT                                                                             \
    "{\"type\":\"t\",\"unique\":\"k\",\"on_conflict\":\"next\",\"start_within\":12000"

static const char *key_entry(void)
{
    return hf_fixture_command(&fixture.redis, "HGET hf:{q}:unique k");
}

static void a_parked_job_expires(void **state)
{
    hf_job_info info = {HF_JOB_INFO_INIT};
    char next[HF_CURSOR_SIZE];
    size_t n = 0;
    (void)state;
    must_put("holder", HOLDER, 0);
    assert_int_equal(claim(1), 1);
    must_put("next", NEXT "}\n", 0);
    int64_t accepted = fixture.now_ms;
    assert_int_equal(expires("next") - accepted, 12000);
    assert_int_equal(hf_fixture_number(&fixture.redis, "ZSCORE hf:{q}:wake baton"),
                     expires("next"));
    pass();
    assert_int_equal(stats().parked, 0); /* before a worker came */
    assert_int_equal(stats().expired, 1);
    assert_int_equal(hf_admin_job(fixture.admin, "q", "next", &info, NULL, detail),
                     HF_GONE);
    assert_int_equal(wait_for("next", accepted), HF_EXPIRED);
    assert_int_equal(hf_admin_list(fixture.admin, "q", HF_STATE_PARKED, NULL, 10, listed,
                                   &n, next, detail),
                     HF_OK);
    assert_int_equal(n, 0);
    assert_int_equal(claim(1), 0);
    assert_int_equal(hf_queue_fixture_meta(&fixture, "expired"), 1);
    assert_int_equal(number("EXISTS hf:{q}:parked hf:{q}:expires hf:{q}:schedule"), 0);
    assert_string_equal(key_entry(), "holder");
    must_put("next", NEXT "}\n", 0); /* its id is free */
    pass();
    must_put("next", PLAIN, 0); /* also before a worker came */
    assert_int_equal(stats().expired, 2);
}

static void a_parked_job_can_die_of_expiry(void **state)
{
    (void)state;
    must_put("holder", HOLDER, 0);
    must_put("next", NEXT ",\"unique_until\":\"done\",\"expired\":\"dead\"}\n", 0);
    pass();
    assert_int_equal(hf_admin_cancel(fixture.admin, "q", "next", NULL, detail), HF_DEAD);
    assert_int_equal(number("ZCARD hf:{q}:dead"), 1);
    assert_int_equal(number("EXISTS hf:{q}:parked"), 0);
    assert_string_equal(key_entry(), "holder"); /* the dead one never had it */
}

/* Both are over at once. */
static void a_parked_job_expires_with_its_holder(void **state)
{
    (void)state;
    must_put("holder", "{\"type\":\"t\",\"unique\":\"k\",\"start_within\":12000}\n", 0);
    must_put("next", NEXT ",\"expired\":\"dead\"}\n", 0);
    pass();
    assert_int_equal(claim(1), 0);
    assert_int_equal(hf_queue_fixture_meta(&fixture, "expired"), 2);
    assert_int_equal(number("ZCARD hf:{q}:dead"), 1);
    assert_int_equal(number("EXISTS hf:{q}:parked hf:{q}:schedule hf:{q}:expires "
                            "hf:{q}:unique"),
                     0);
}

static void a_holder_is_not_replaced_by_what_has_expired(void **state)
{
    (void)state;
    must_put("holder", HOLDER, 0);
    assert_int_equal(claim(1), 1);
    must_put("next", NEXT "}\n", 0);
    pass();
    verdict(HF_OP_RETRY, "holder", "it broke", true, 0);
    assert_int_equal(claim(1), 1);
    assert_string_equal(fixture.jobs[0].id, "holder");
    assert_int_equal(hf_queue_fixture_meta(&fixture, "expired"), 1);
    assert_int_equal(hf_queue_fixture_meta(&fixture, "replaced"), -1);
}

/* It cannot start before the window of its key, or before its own time. */
static void the_time_of_a_parked_job_begins_when_it_may_start(void **state)
{
    (void)state;
    must_put("holder",
             "{\"type\":\"t\",\"unique\":\"k\",\"throttle\":600000,"
             "\"start_within\":600000}\n",
             0);
    int64_t accepted = fixture.now_ms;
    must_put("next",
             "{\"type\":\"t\",\"unique\":\"k\",\"throttle\":600000,"
             "\"on_conflict\":\"next\",\"start_within\":12000}\n",
             0);
    assert_int_equal(expires("next"), accepted + 612000);
    must_put("later", "{\"type\":\"t\",\"unique\":\"l\",\"start_within\":600000}\n", 0);
    must_put("after",
             "{\"type\":\"t\",\"unique\":\"l\",\"on_conflict\":\"next\","
             "\"start_within\":12000}\n",
             -60000);
    assert_int_equal(expires("after"), fixture.now_ms + 72000);
    assert_int_equal(claim(9), 2);
    const hf_verdict_args args = {.worker = "w"};
    const hf_verdict_item items[] = {{.id = "later", .leaving = {"l", 1}},
                                     {.id = "holder", .leaving = {"k", 1}}};
    for (size_t i = 0; i < HF_COUNT(items); i++)
        assert_int_equal(
            hf_queue_fixture_verdict(&fixture, HF_OP_COMPLETE, &args, &items[i]), HF_OK);
    assert_int_equal(expires("next"), accepted + 612000); /* it follows, and keeps it */
    assert_string_equal(hf_fixture_command(&fixture.redis, "HGET hf:{q}:unique l"),
                        "after");
}

/* ---- nothing is left ---- */

static void every_exit_leaves_no_time_behind(void **state)
{
    size_t n;
    (void)state;
    must_put("a", LONG, 0);
    must_put("b", LONG, 0);
    must_put("c", LONG, 0);
    assert_int_equal(hf_admin_cancel(fixture.admin, "q", "a", NULL, detail), HF_OK);
    assert_int_equal(hf_admin_delete(fixture.admin, "q", "b", NULL, detail), HF_OK);
    assert_int_equal(hf_admin_purge(fixture.admin, "q", NULL, NULL, &n, detail), HF_OK);
    assert_int_equal(n, 1);
    assert_empty();
    assert_int_equal(hf_queue_fixture_check(&fixture, "w", false), HF_OK);
    assert_string_equal(hf_fixture_command(&fixture.redis, "HGET hf:{q}:meta uses"),
                        "(nil)");
}

/* Of a job that was requeued after its death. */
static void what_expires_leaves_no_checkpoint(void **state)
{
    (void)state;
    must_put("one", DROP, 0);
    (void)number("HSET hf:{q}:checkpoint one 1");
    (void)number("HSET hf:{q}:meta uses xm");
    pass();
    assert_int_equal(claim(1), 0);
    assert_int_equal(number("EXISTS hf:{q}:checkpoint"), 0);
}

/* A time that is not of this job (another version removed the first one) ends nothing. */
static void a_strange_time_ends_no_job(void **state)
{
    (void)state;
    must_put("one", PLAIN, 0);
    must_put("two", LONG, 0);
    (void)hf_fixture_command(&fixture.redis, "ZADD hf:{q}:expires 1 one 1 two 1 none");
    assert_int_equal(claim(1), 1);
    assert_int_equal(claim(1), 1);
    assert_int_equal(hf_queue_fixture_meta(&fixture, "expired"), -1);
    assert_int_equal(number("EXISTS hf:{q}:expires"), 0);
}

static void the_audit_finds_a_time_without_a_job(void **state)
{
    size_t found = 0;
    const hf_audit_opts opts = {HF_AUDIT_OPTS_INIT, .fix = true};
    (void)state;
    must_put("one", LONG, 0);
    (void)hf_fixture_command(&fixture.redis, "ZADD hf:{q}:expires 9000000000000 none");
    assert_int_equal(hf_admin_audit(fixture.admin, "q", &opts, &found, detail), HF_OK);
    assert_int_equal(found, 1);
    assert_int_equal(expires("none"), -1);
    assert_true(expires("one") > 0);
}

static int up(void **state)
{
    (void)state;
    hf_queue_fixture_start(&fixture, &(hf_fixture_options){.clock = true});
    fixture.admin = hf_queue_fixture_admin(&fixture);
    return 0;
}

#define TEST(name)                                                                       \
    cmocka_unit_test_prestate_setup_teardown(name, up, hf_queue_fixture_down, &fixture)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_late_is_not_claimed),
        TEST(what_starts_in_time_does_not_expire),
        TEST(the_time_begins_with_the_first_due_time),
        TEST(a_claim_takes_a_token_for_none),
        TEST(a_paused_queue_lets_them_expire),
        TEST(a_queue_at_its_limit_lets_them_expire),
        TEST(many_expire_in_slices_and_the_next_comes_at_once),
        TEST(fewer_expire_at_once_that_are_large_or_die),
        TEST(it_can_become_a_dead_letter),
        TEST(a_retry_never_expires),
        TEST(what_started_and_was_released_never_expires),
        TEST(what_did_not_start_expires_when_it_would_have),
        TEST(what_was_taken_over_may_have_started),
        TEST(before_a_worker_came_it_is_gone_for_everybody),
        TEST(before_a_worker_came_its_logs_have_ended),
        TEST(it_is_not_listed),
        TEST(its_id_is_free),
        TEST(it_is_neither_cancelled_nor_deleted_nor_retried),
        TEST(what_is_hastened_has_its_whole_time),
        TEST(a_parked_job_expires),
        TEST(a_parked_job_can_die_of_expiry),
        TEST(a_parked_job_expires_with_its_holder),
        TEST(a_holder_is_not_replaced_by_what_has_expired),
        TEST(the_time_of_a_parked_job_begins_when_it_may_start),
        TEST(every_exit_leaves_no_time_behind),
        TEST(what_expires_leaves_no_checkpoint),
        TEST(a_strange_time_ends_no_job),
        TEST(the_audit_finds_a_time_without_a_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
