/* test_job_wait.c - waiting for the ends of jobs: told at once, with the result, by any
 * end; and nothing of a waiter stays behind. */
#include "holdfast/job_wait.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "tests/support/eventually.h"
#include "tests/support/queue_fixture.h"

enum { HOUR = 3600000, MANY = 200 };

static hf_queue_fixture fixture;
static hf_waits *waits;
static char detail[HF_DETAIL_SIZE];

static void must(hf_err err)
{
    if (err != HF_OK)
        fail_msg("%s: %s", hf_err_name(err), detail);
}

static hf_waits *open_waits(void)
{
    hf_waits *opened = NULL;
    const hf_server_opts server = {HF_SERVER_OPTS_INIT,
                                   .url = hf_fixture_url(&fixture.redis)};
    const hf_waits_opts opts = {HF_WAITS_OPTS_INIT, .server = &server};
    must(hf_waits_open(&opened, &opts, detail));
    return opened;
}

static int up(void **state)
{
    int failed = hf_queue_fixture_up_admin(state);
    waits = open_waits();
    return failed;
}

static int down(void **state)
{
    hf_waits_close(waits);
    waits = NULL;
    return hf_queue_fixture_down(state);
}

/* ---- what is told ---- */

typedef struct told {
    atomic_int n;
    hf_err err;
    hf_result_kind kind;
    hf_job_outcome outcome;
    char result[64], why[64];
    uint64_t at_ns;
} told;

static void on_end(const hf_job_end *end, void *arg)
{
    told *t = arg;
    t->err = end->err;
    t->kind = end->kind;
    t->outcome = end->outcome;
    t->at_ns = hf_boot_ns();
    (void)snprintf(t->result, sizeof t->result, "%.*s", (int)end->len,
                   end->result == NULL ? "" : (const char *)end->result);
    (void)snprintf(t->why, sizeof t->why, "%s", end->detail);
    atomic_fetch_add(&t->n, 1);
}

static void wait_for(told *t, const char *id, uint32_t deadline_ms)
{
    *t = (told){.err = HF_OK};
    must(hf_job_wait(waits, "q", id, fixture.now_ms, deadline_ms, on_end, t, detail));
}

static void is_told(told *t, hf_err err)
{
    EVENTUALLY(15000, atomic_load(&t->n) == 1);
    if (t->err != err)
        fail_msg("told %s: %s", hf_err_name(t->err), t->why);
}

static bool is_waited_for(const char *id)
{
    return hf_fixture_number(&fixture.redis, "HEXISTS hf:{q}:waits %s", id) == 1;
}

static void run(const char *id)
{
    must(hf_queue_fixture_enqueue(&fixture, id, 0));
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 1, 0), 1);
}

static void verdict(hf_verdict_op op, const char *id)
{
    static const char words[] = "{\"type\":\"t\",\"result\":\"bytes\"}\nit";
    const hf_verdict_args args = {.worker = "w",
                                  .dead_max = 100,
                                  .dead_age_ms = HOUR,
                                  .keep_max = 100,
                                  .keep_bytes = 1 << 20};
    const hf_verdict_item item = {.id = id,
                                  .due_ms = op == HF_OP_KEEP ? HOUR : 0,
                                  .error = {"it broke", op == HF_OP_KEEP ? 0 : 8},
                                  .reason = "handler",
                                  .words = {words, sizeof words - 1}};
    must(hf_queue_fixture_verdict(&fixture, op, &args, &item));
}

/* ---- the ends ---- */

static void nothing_is_left(void)
{
    assert_int_equal(hf_fixture_number(&fixture.redis, "EXISTS hf:{q}:waits"), 0);
    assert_string_equal(hf_fixture_command(&fixture.redis, "HGET hf:{q}:meta uses"),
                        "(nil)");
}

static void the_end_is_told_with_the_result_and_not_asked_for(void **state)
{
    told t;
    (void)state;
    run("one");
    wait_for(&t, "one", 0);
    EVENTUALLY(5000, is_waited_for("one"));
    /* Long enough that a poll of 200 ms would show in the count of scripts. */
    long long before = hf_fixture_calls(&fixture.redis, "evalsha");
    ALWAYS(1000, hf_fixture_calls(&fixture.redis, "evalsha") - before < 4);
    verdict(HF_OP_KEEP, "one");
    is_told(&t, HF_OK);
    assert_int_equal(t.kind, HF_RESULT_BYTES);
    assert_string_equal(t.result, "it");
    assert_false(is_waited_for("one"));
}

static void without_keeping_the_end_is_told_as_well(void **state)
{
    told t;
    (void)state;
    run("one");
    wait_for(&t, "one", 0);
    EVENTUALLY(5000, is_waited_for("one"));
    must(hf_queue_fixture_complete(&fixture, "w", "one", NULL));
    is_told(&t, HF_OK);
    assert_int_equal(t.kind, HF_RESULT_NONE);
    nothing_is_left();
}

static void cancel(const char *id)
{
    must(hf_admin_cancel(fixture.admin, "q", id, NULL, detail));
}

static void delete_it(const char *id)
{
    must(hf_admin_delete(fixture.admin, "q", id, NULL, detail));
}

static void purge(const char *id)
{
    size_t n;
    (void)id;
    must(hf_admin_purge(fixture.admin, "q", NULL, NULL, &n, detail));
}

static void other_ends_are_told(void **state)
{
    static void (*const ways[])(const char *id) = {cancel, delete_it, purge};
    static const hf_job_outcome outcomes[] = {HF_JOB_CANCELLED, HF_JOB_DELETED,
                                              HF_JOB_DELETED};
    told t;
    (void)state;
    for (size_t i = 0; i < HF_COUNT(ways); i++) {
        must(hf_queue_fixture_enqueue(&fixture, "one", 0));
        wait_for(&t, "one", 0);
        EVENTUALLY(5000, is_waited_for("one"));
        ways[i]("one");
        is_told(&t, i == 0 ? HF_CANCEL : HF_DELETED);
        assert_int_equal(t.outcome, outcomes[i]);
        nothing_is_left();
    }
    run("one");
    wait_for(&t, "one", 0);
    EVENTUALLY(5000, is_waited_for("one"));
    verdict(HF_OP_BURY, "one");
    is_told(&t, HF_DEAD);
    assert_string_equal(t.why, "it broke");
    nothing_is_left();
}

/* A retry is no end. */
static void a_retry_is_not_told(void **state)
{
    told t;
    (void)state;
    run("one");
    wait_for(&t, "one", 0);
    EVENTUALLY(5000, is_waited_for("one"));
    verdict(HF_OP_RETRY, "one");
    assert_true(is_waited_for("one"));
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 1, 0), 1);
    verdict(HF_OP_KEEP, "one");
    is_told(&t, HF_OK);
    assert_string_equal(t.result, "it");
}

/* ---- who comes late, and who leaves ---- */

static void a_waiter_that_comes_late_gets_the_result(void **state)
{
    told t;
    (void)state;
    run("one");
    verdict(HF_OP_KEEP, "one");
    wait_for(&t, "one", 0);
    is_told(&t, HF_OK);
    assert_string_equal(t.result, "it");
    wait_for(&t, "nobody", 0);
    is_told(&t, HF_GONE);
    assert_int_equal(t.outcome, HF_JOB_UNKNOWN);
}

static void a_deadline_is_kept_and_leaves_nothing(void **state)
{
    told t;
    (void)state;
    run("one");
    uint64_t from_ns = hf_boot_ns();
    wait_for(&t, "one", 300);
    is_told(&t, HF_TIMEOUT);
    assert_true(t.at_ns - from_ns >= 300 * HF_MS_NS);
    assert_false(is_waited_for("one"));
}

static void what_waits_is_told_when_it_is_closed(void **state)
{
    told t;
    (void)state;
    run("one");
    wait_for(&t, "one", 0);
    EVENTUALLY(5000, is_waited_for("one"));
    hf_waits_close(waits);
    waits = NULL;
    is_told(&t, HF_CLOSED);
    assert_false(is_waited_for("one"));
}

/* It cannot take its name back. */
static void a_waiter_that_was_killed_leaves_with_the_job(void **state)
{
    static const char note[] = "return(redis.call('HSET',KEYS[1],'one','1\\032gone'))";
    (void)state;
    run("one");
    (void)hf_fixture_command(&fixture.redis, "EVAL %s 1 hf:{q}:waits", note);
    (void)hf_fixture_command(&fixture.redis, "HSET hf:{q}:meta uses m");
    must(hf_queue_fixture_complete(&fixture, "w", "one", NULL));
    nothing_is_left();
    long long ttl = hf_fixture_number(&fixture.redis, "PTTL hf:{q}:told:gone");
    assert_true(ttl > 0 && ttl <= 60000);
}

/* ---- which job it is ---- */

/* The ms of its acceptance. */
static int64_t put_awaited(const char *id)
{
    static const char record[] = "{\"type\":\"t\",\"created\":1,\"awaited\":1}\nx";
    const hf_enqueue_args args = {.producer = "", .options = true};
    const hf_enqueue_item item = {.id = id, .record = {record, sizeof record - 1}};
    must(hf_queue_fixture_enqueue_items(&fixture, &args, &item, 1));
    return fixture.now_ms;
}

static void wait_for_that(told *t, const char *id, int64_t accepted_ms)
{
    *t = (told){.err = HF_OK};
    must(hf_job_wait(waits, "q", id, accepted_ms, 0, on_end, t, detail));
}

static void claim_one(void)
{
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 1, 0), 1);
}

static void an_awaited_job_that_ended_before_is_told(void **state)
{
    told t;
    (void)state;
    int64_t done_ms = put_awaited("done");
    claim_one();
    must(hf_queue_fixture_complete(&fixture, "w", "done", NULL));
    int64_t dead_ms = put_awaited("dead");
    claim_one();
    verdict(HF_OP_BURY, "dead");
    int64_t purged_ms = put_awaited("purged");
    purge("purged");
    wait_for_that(&t, "done", done_ms);
    is_told(&t, HF_OK);
    wait_for_that(&t, "purged", purged_ms);
    is_told(&t, HF_DELETED);
    wait_for_that(&t, "dead", dead_ms); /* the purge has removed it since */
    is_told(&t, HF_DEAD);
    assert_true(hf_fixture_number(&fixture.redis, "PTTL hf:{q}:ended:@%lld:done",
                                  (long long)done_ms) <= 60000); /* it was read */
}

/* Two jobs of one id: each waiter learns of its own. */
static void a_later_job_of_its_id_is_another_one(void **state)
{
    told first, second;
    (void)state;
    int64_t first_ms = put_awaited("one");
    cancel("one");
    int64_t second_ms = put_awaited("one");
    wait_for_that(&second, "one", second_ms);
    EVENTUALLY(5000, is_waited_for("one"));
    wait_for_that(&first, "one", first_ms);
    is_told(&first, HF_CANCEL);
    claim_one();
    must(hf_queue_fixture_complete(&fixture, "w", "one", NULL));
    is_told(&second, HF_OK);
}

/* Redis has lost the job, and another one has its id. */
static void a_job_that_redis_lost_is_unknown(void **state)
{
    told t;
    (void)state;
    wait_for_that(&t, "one", put_awaited("one"));
    EVENTUALLY(5000, strchr(hf_fixture_command(&fixture.redis, "HGET hf:{q}:waits one"),
                            '*') == NULL); /* its client has come */
    (void)hf_fixture_command(&fixture.redis, "FLUSHALL");
    must(hf_queue_fixture_enqueue(&fixture, "one", 0));
    is_told(&t, HF_GONE);
    assert_int_equal(t.outcome, HF_JOB_UNKNOWN);
}

/* By hand: a waiter that was not stopped has had its answer. */
static void a_death_is_the_end_although_it_is_retried(void **state)
{
    told t;
    (void)state;
    int64_t accepted_ms = put_awaited("one");
    claim_one();
    verdict(HF_OP_BURY, "one");
    must(hf_admin_retry(fixture.admin, "q", "one", detail));
    wait_for_that(&t, "one", accepted_ms);
    is_told(&t, HF_DEAD);
    delete_it("one");
}

/* ---- many ---- */

/* The words of the note about a job. */
static size_t names_of(const char *id)
{
    const char *at = hf_fixture_command(&fixture.redis, "HGET hf:{q}:waits %s", id);
    size_t n = 1;
    while ((at = strchr(at, ' ')) != NULL) {
        at++;
        n++;
    }
    return n;
}

static void many_waits_of_several_clients_are_all_told(void **state)
{
    static told all[MANY], other;
    hf_waits *mine = waits, *second = open_waits();
    char id[16];
    (void)state;
    for (int i = 0; i < MANY; i++) {
        (void)snprintf(id, sizeof id, "job-%d", i);
        run(id);
        wait_for(&all[i], id, 0);
    }
    waits = second;
    wait_for(&other, "job-7", 0);
    waits = mine;
    EVENTUALLY(15000, hf_fixture_number(&fixture.redis, "HLEN hf:{q}:waits") == MANY);
    EVENTUALLY(5000, names_of("job-7") == 3); /* when it was accepted, and both */
    for (int i = 0; i < MANY; i++) {
        (void)snprintf(id, sizeof id, "job-%d", i);
        (void)snprintf(
            fixture.fence, sizeof fixture.fence, "%s",
            strrchr(hf_fixture_command(&fixture.redis, "GET hf:{q}:lock:%s", id), ':') +
                1);
        must(hf_queue_fixture_complete(&fixture, "w", id, NULL));
    }
    for (int i = 0; i < MANY; i++)
        is_told(&all[i], HF_OK);
    is_told(&other, HF_OK);
    nothing_is_left();
    hf_waits_close(second);
}

static void a_blocking_call_is_told_too(void **state)
{
    (void)state;
    must(hf_queue_fixture_enqueue(&fixture, "one", 0));
    assert_int_equal(hf_admin_wait(fixture.admin, "q", "one", 0, 300, detail),
                     HF_TIMEOUT);
    assert_false(is_waited_for("one"));
}

/* A user that may not write, or not block, asks again and again. */
static void a_user_that_may_only_read_is_told_later(void **state)
{
    static const char *const rules[] = {"-blpop", "-hset", "-@write"};
    char user_url[512];
    told t;
    (void)state;
    for (size_t i = 0; i < HF_COUNT(rules); i++) {
        (void)hf_fixture_command(&fixture.redis,
                                 "ACL SETUSER weak reset on >weak ~* +@all %s", rules[i]);
        (void)snprintf(user_url, sizeof user_url, "unix://weak:weak@%s",
                       fixture.redis.socket);
        const hf_server_opts server = {HF_SERVER_OPTS_INIT, .url = user_url};
        const hf_waits_opts opts = {HF_WAITS_OPTS_INIT, .server = &server};
        hf_waits_close(waits);
        must(hf_waits_open(&waits, &opts, detail));
        run("one");
        wait_for(&t, "one", 0);
        ALWAYS(100, atomic_load(&t.n) == 0);
        verdict(HF_OP_KEEP, "one"); /* else nothing would tell what it could not note */
        is_told(&t, HF_OK);
    }
}

static void a_connection_that_is_lost_loses_no_end(void **state)
{
    told t;
    (void)state;
    run("one");
    wait_for(&t, "one", 0);
    EVENTUALLY(5000, is_waited_for("one"));
    (void)hf_fixture_command(&fixture.redis, "CLIENT KILL TYPE normal SKIPME yes");
    hf_queue_fixture_ready(&fixture);
    hf_err err = hf_queue_fixture_complete(&fixture, "w", "one", NULL);
    if (err == HF_UNSURE || err == HF_CONN) {
        hf_queue_fixture_ready(&fixture);
        must(hf_queue_fixture_complete(&fixture, "w", "one", NULL));
    }
    is_told(&t, HF_OK);
}

#define TEST(name) cmocka_unit_test_prestate_setup_teardown(name, up, down, &fixture)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_end_is_told_with_the_result_and_not_asked_for),
        TEST(without_keeping_the_end_is_told_as_well),
        TEST(other_ends_are_told),
        TEST(a_retry_is_not_told),
        TEST(a_waiter_that_comes_late_gets_the_result),
        TEST(a_deadline_is_kept_and_leaves_nothing),
        TEST(what_waits_is_told_when_it_is_closed),
        TEST(a_waiter_that_was_killed_leaves_with_the_job),
        TEST(an_awaited_job_that_ended_before_is_told),
        TEST(a_later_job_of_its_id_is_another_one),
        TEST(a_job_that_redis_lost_is_unknown),
        TEST(a_death_is_the_end_although_it_is_retried),
        TEST(many_waits_of_several_clients_are_all_told),
        TEST(a_blocking_call_is_told_too),
        TEST(a_user_that_may_only_read_is_told_later),
        TEST(a_connection_that_is_lost_loses_no_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
