/* test_audit.c - a queue that is broken by hand: the audit names the invariant and the
 * id, and writes nothing. (What it puts right is in test_repair.c.) */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "tests/support/eventually.h"
#include "tests/support/queue_fixture.h"

enum { FINDINGS = 16 };

typedef struct finding {
    int invariant;
    char id[64], text[128];
} finding;

static hf_queue_fixture fixture;
static char detail[HF_DETAIL_SIZE];
static finding findings[FINDINGS];
static size_t n_findings;

static void on_finding(const hf_finding *given, void *arg)
{
    (void)arg;
    assert_false(given->repaired);
    assert_true(given->check[0] != '\0' && given->repair[0] != '\0');
    if (n_findings < FINDINGS) {
        finding *f = &findings[n_findings];
        f->invariant = given->invariant;
        (void)snprintf(f->id, sizeof f->id, "%s", given->id);
        (void)snprintf(f->text, sizeof f->text, "%s", given->text);
    }
    n_findings++;
}

static size_t audit(bool idle)
{
    size_t found;
    n_findings = 0;
    long long writes = hf_queue_fixture_writes(&fixture);
    hf_err err = hf_admin_audit(
        fixture.admin, "q",
        &(hf_audit_opts){HF_AUDIT_OPTS_INIT, .idle = idle, .cb = on_finding}, &found,
        detail);
    if (err != HF_OK)
        fail_msg("audit: %s", detail);
    assert_int_equal(hf_queue_fixture_writes(&fixture), writes);
    assert_int_equal(found, n_findings);
    return found;
}

static void assert_one(bool idle, int invariant, const char *id, const char *words)
{
    size_t found = audit(idle);
    if (found != 1 || findings[0].invariant != invariant ||
        strcmp(findings[0].id, id) != 0 || strstr(findings[0].text, words) == NULL)
        fail_msg("%zu findings, the first is I%d: %s %s", found, findings[0].invariant,
                 findings[0].id, findings[0].text);
}

/* A queue with a job in each state: `waits`, `runs` and `dead`. */
static void fill(void)
{
    const hf_verdict_args args = {.worker = "w", .dead_max = 10, .dead_age_ms = 1000000};
    const hf_verdict_item item = {.id = "dead", .error = {"x", 1}, .reason = "handler"};
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, "dead", 0), HF_OK);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 1, 0), 1);
    assert_int_equal(hf_queue_fixture_verdict(&fixture, HF_OP_BURY, &args, &item), HF_OK);
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, "runs", 0), HF_OK);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 1, 0), 1);
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, "waits", 0), HF_OK);
    assert_int_equal(audit(false), 0);
}

#define BREAK(...) (void)hf_fixture_command(&fixture.redis, __VA_ARGS__)

static void a_queue_in_use_is_clean(void **state)
{
    (void)state;
    fill();
    const hf_audit_opts idle = {HF_AUDIT_OPTS_INIT, .idle = true};
    assert_int_equal(hf_admin_audit(fixture.admin, "q", NULL, &n_findings, detail),
                     HF_OK);
    assert_int_equal(n_findings, 0);
    assert_int_equal(
        hf_admin_audit(fixture.admin, "never used", NULL, &n_findings, detail),
        HF_INVALID);
    assert_int_equal(
        hf_admin_audit(fixture.admin, "never.used", &idle, &n_findings, detail), HF_OK);
    assert_int_equal(n_findings, 0);
}

static void i1_a_job_in_two_sets_is_found(void **state)
{
    (void)state;
    fill();
    BREAK("ZADD hf:{q}:dead 1 waits");
    assert_one(false, 1, "waits", "`dead`");
    BREAK("ZREM hf:{q}:dead waits");
    BREAK("ZADD hf:{q}:schedule 1 dead");
    assert_one(false, 1, "dead", "`dead`");
    BREAK("ZREM hf:{q}:schedule dead");
    BREAK("ZADD hf:{q}:dead 1 runs");
    assert_one(false, 1, "runs", "`running`");
}

static void i1_a_job_without_a_record_is_found(void **state)
{
    static const char *const ids[] = {"waits", "runs", "dead"};
    (void)state;
    for (size_t i = 0; i < HF_COUNT(ids); i++) {
        BREAK("FLUSHALL");
        fill();
        BREAK("HDEL hf:{q}:jobs %s", ids[i]);
        assert_one(false, 1, ids[i], "no record");
    }
}

static void i1_a_record_without_a_job_is_found(void **state)
{
    (void)state;
    fill();
    BREAK("HSET hf:{q}:jobs nobody x");
    assert_one(false, 1, "nobody", "in no set");
}

static void i1_a_record_that_cannot_be_read_is_found(void **state)
{
    static const char *const records[] = {"", "x", "{\"v\":1}", "[1]\nx", "{v\nx"};
    static const char *const ids[] = {"waits", "runs", "dead"};
    (void)state;
    for (size_t i = 0; i < HF_COUNT(records) * HF_COUNT(ids); i++) {
        const char *id = ids[i % HF_COUNT(ids)];
        BREAK("FLUSHALL");
        fill();
        BREAK("HSET hf:{q}:jobs %s %s", id, records[i / HF_COUNT(ids)]);
        assert_one(false, 1, id, "cannot be read");
    }
}

static void i3_a_lock_that_names_no_holder_is_found(void **state)
{
    (void)state;
    fill();
    BREAK("SET hf:{q}:lock:runs w KEEPTTL");
    assert_one(false, 3, "runs", "no holder");
}

static void i5_a_lock_of_a_job_that_does_not_run_is_found(void **state)
{
    (void)state;
    fill();
    BREAK("SET hf:{q}:lock:waits w:1 PX 10000");
    assert_one(false, 5, "waits", "`schedule`");
    BREAK("DEL hf:{q}:lock:waits");
    BREAK("SET hf:{q}:lock:dead w:1 PX 10000");
    assert_one(false, 5, "dead", "`dead`");
    BREAK("DEL hf:{q}:lock:dead");
    BREAK("SET hf:{q}:lock:nobody w:1 PX 10000");
    assert_one(false, 5, "nobody", "no job");
}

static void i5_a_lock_that_ends_at_another_time_than_its_score_is_found(void **state)
{
    (void)state;
    fill();
    BREAK("PEXPIRE hf:{q}:lock:runs %d", HF_FIXTURE_LEASE_MS * 2);
    assert_one(false, 5, "runs", "after its score");
    BREAK("PERSIST hf:{q}:lock:runs");
    assert_one(false, 5, "runs", "no end");
    BREAK("DEL hf:{q}:lock:runs");
    assert_one(false, 5, "runs", "no lock");
}

static void a_job_whose_holder_died_breaks_nothing(void **state)
{
    (void)state;
    assert_int_equal(hf_queue_fixture_enqueue(&fixture, "one", 0), HF_OK);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 1, 20), 1);
    ALWAYS(100, audit(false) == 0);
}

/* ---- a machine that stands still ---- */

typedef struct stalls {
    pthread_t thread;
    atomic_bool over;
} stalls;

/* Again and again for longer than a lock may be off, at moments that nobody chooses. */
static void *stall(void *arg)
{
    stalls *s = arg;
    while (!atomic_load(&s->over)) {
        hf_fixture_signal(&fixture.redis, SIGSTOP);
        hf_test_pause_ms(60);
        hf_fixture_signal(&fixture.redis, SIGCONT);
        hf_test_pause_ms(3);
    }
    return NULL;
}

static void i5_a_machine_that_stops_during_a_look_is_no_finding(void **state)
{
    static char ids[HF_CLAIM_MAX][16];
    static stalls s;
    (void)state;
    hf_queue_fixture_fill(&fixture, ids, HF_CLAIM_MAX);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", HF_CLAIM_MAX, 600000),
                     HF_CLAIM_MAX);
    assert_int_equal(pthread_create(&s.thread, NULL, stall, &s), 0);
    size_t found = 0;
    for (int i = 0; i < 6 && found == 0; i++)
        found = audit(false);
    atomic_store(&s.over, true);
    pthread_join(s.thread, NULL);
    assert_int_equal(found, 0);
}

static void i6_a_fence_that_was_never_given_out_is_found(void **state)
{
    (void)state;
    fill();
    BREAK("HSET hf:{q}:meta fence 5");
    assert_one(false, 6, "runs", "above the last");
}

static void i9_marks_of_jobs_that_are_gone_are_found(void **state)
{
    (void)state;
    fill();
    BREAK("HSET hf:{q}:meta uses m");
    BREAK("HSET hf:{q}:crashes nobody 1");
    assert_one(false, 9, "nobody", "`crashes`");
    BREAK("DEL hf:{q}:crashes");
    BREAK("HSET hf:{q}:cancel waits 1");
    assert_one(false, 9, "waits", "`cancel`");
}

static void i9_keys_that_no_queue_has_are_found(void **state)
{
    (void)state;
    fill();
    BREAK("SET hf:{q}:else 1");
    assert_one(false, 9, "hf:{q}:else", "no key");
    BREAK("DEL hf:{q}:else");
    BREAK("SET hf:{q}:seen:p 1:1");
    assert_one(false, 9, "hf:{q}:seen:p", "no end");
    BREAK("DEL hf:{q}:seen:p");
    BREAK("ZADD hf:{q}:wake 1 baton 2 stick");
    assert_one(false, 9, "hf:{q}:wake", "more than one");
}

static void i9_of_an_idle_queue_nothing_that_runs_may_remain(void **state)
{
    (void)state;
    fill();
    assert_true(audit(true) >= 2); /* `runs` still runs, `waits` still waits */
    bool runs = false;
    for (size_t i = 0; i < n_findings; i++)
        runs =
            runs || (findings[i].invariant == 9 && strcmp(findings[i].id, "runs") == 0);
    assert_true(runs);
    assert_int_equal(hf_queue_fixture_complete(&fixture, "w", "runs", NULL), HF_OK);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", 1, 0), 1);
    assert_int_equal(hf_queue_fixture_complete(&fixture, "w", "waits", NULL), HF_OK);
    assert_int_equal(audit(true), 0); /* the dead may stay */
}

/* More than one slice in each phase, and the last member is the broken one. */
static void a_long_queue_is_looked_at_to_its_end(void **state)
{
    enum { MANY = 1800 };
    static char ids[MANY][16];
    (void)state;
    hf_queue_fixture_fill(&fixture, ids, MANY);
    assert_int_equal(hf_queue_fixture_claim(&fixture, "w", HF_CLAIM_MAX, 0),
                     HF_CLAIM_MAX);
    assert_int_equal(audit(false), 0);
    BREAK("HDEL hf:{q}:jobs %s", ids[MANY - 1]);
    assert_one(false, 1, ids[MANY - 1], "no record");
    BREAK("HSET hf:{q}:jobs %s %s", ids[MANY - 1], "{\"type\":\"t\"}\n");
    BREAK("DEL hf:{q}:lock:%s", ids[HF_CLAIM_MAX - 1]);
    assert_one(false, 5, ids[HF_CLAIM_MAX - 1], "no lock");
}

static int up(void **state)
{
    int failed = hf_queue_fixture_up_admin(state);
    fixture.broken = true;
    return failed;
}

#define TEST(name)                                                                       \
    cmocka_unit_test_prestate_setup_teardown(name, up, hf_queue_fixture_down, &fixture)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_queue_in_use_is_clean),
        TEST(i1_a_job_in_two_sets_is_found),
        TEST(i1_a_job_without_a_record_is_found),
        TEST(i1_a_record_without_a_job_is_found),
        TEST(i1_a_record_that_cannot_be_read_is_found),
        TEST(i3_a_lock_that_names_no_holder_is_found),
        TEST(i5_a_lock_of_a_job_that_does_not_run_is_found),
        TEST(i5_a_lock_that_ends_at_another_time_than_its_score_is_found),
        TEST(a_job_whose_holder_died_breaks_nothing),
        TEST(i5_a_machine_that_stops_during_a_look_is_no_finding),
        TEST(i6_a_fence_that_was_never_given_out_is_found),
        TEST(i9_marks_of_jobs_that_are_gone_are_found),
        TEST(i9_keys_that_no_queue_has_are_found),
        TEST(i9_of_an_idle_queue_nothing_that_runs_may_remain),
        TEST(a_long_queue_is_looked_at_to_its_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
